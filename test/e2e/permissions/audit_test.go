// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// audited is the cluster whose requests are in the audit logs of a worthHub.
const audited = "audited"

// auditLogs returns the audit logs of the API servers of a worthHub.
func auditLogs(dir string) (ours, front string) {
	return filepath.Join(dir, "audit", "hub-apiserver.log"), filepath.Join(dir, "audit", "front.log")
}

// withAuditLogs enables the audit logs of both API servers of a hub. They are in the directory of the hub, which is the only one of this machine that
// hub-apiserver sees if it runs in its image.
func withAuditLogs(t *testing.T, c *localhub.Options) {
	t.Helper()
	ours, front := auditLogs(c.Dir)
	policy := filepath.Join(filepath.Dir(ours), "policy.yaml")
	rules := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
		"rules: [{level: Metadata, resources: [{group: " + harness.ClusterGroup + ", resources: [managedclusters], resourceNames: [" + audited + "]}]}]\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(policy), 0o700), os.WriteFile(policy, []byte(rules), 0o600)); err != nil {
		t.Fatal(err)
	}
	c.HubAPIServerArgs = []string{"--audit-policy-file=" + policy, "--audit-log-path=" + ours, "--audit-log-mode=blocking"}
	c.FrontArgs = []string{"--audit-policy-file=" + policy, "--audit-log-path=" + front, "--audit-log-mode=blocking"}
}

func TestAudit_NamesPermissionOfWrite(t *testing.T) {
	t.Parallel()
	hub := newWorth(t, &ofAllAgents).hub
	ours, front := auditLogs(hub.Dir())
	admin := harness.Ours(t, hub.AdminConfig()).ClusterV1().ManagedClusters()
	c := harness.Must(admin.Create(t.Context(), harness.ManagedCluster(audited, nil), metav1.CreateOptions{}))(t)
	const region = harness.InfoPrefix + "region"
	user := harness.Unique("dana")
	harness.Grant(t, hub, user, user, harness.Rule("patch", "managedclusters", c.Name), harness.LabelRight(region+":*"))
	clusters := harness.Ours(t, hub.UserConfig(user)).ClusterV1().ManagedClusters()
	patch := func(body string) error {
		return harness.ErrorOf(clusters.Patch(t.Context(), c.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{}))
	}
	if err := patch(`{"metadata":{"labels":{"` + region + `":"emea"}}}`); err != nil {
		t.Fatal(err)
	}
	if err := patch(`{"spec":{"hubAcceptsClient":true}}`); !apierrors.IsForbidden(err) {
		t.Fatalf("to accept: %v", err)
	}
	if err := patch(`{"metadata":{"labels":{"plain":"x"}}}`); err != nil {
		t.Fatal(err)
	}

	of := "managedclusters.cluster.open-cluster-management.io"
	want := []map[string]string{
		{permission.AnnotationPrefix + "managedclusterlabel": `allowed: create ` + of + `/label "` + region + `:*"`},
		{permission.AnnotationPrefix + "managedclusteraccept": `refused: update ` + of + `/accept "` + c.Name + `"`},
		{},
	}
	harness.Eventually(t, "the audit log says so", func(context.Context) (bool, error) {
		var got []map[string]string
		asked := map[types.UID]bool{}
		for _, e := range harness.AuditEvents(t, front) {
			asked[e.AuditID] = e.ImpersonatedUser != nil && e.ImpersonatedUser.Username == user
		}
		for _, e := range harness.AuditEvents(t, ours) {
			// The front forwards the ID of its own event.
			if e.User.Username != user || e.Verb != "patch" || !asked[e.AuditID] {
				continue
			}
			maps.DeleteFunc(e.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, permission.AnnotationPrefix) })
			if e.Annotations == nil {
				e.Annotations = map[string]string{}
			}
			got = append(got, e.Annotations)
		}
		same := len(got) == len(want)
		for i := range want {
			same = same && maps.Equal(got[i], want[i])
		}
		return harness.Holds(same, got)
	})
}
