// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const visibleClusters = "managedclusters.clusterview.open-cluster-management.io"

// TestVisibleClusters_OfUser verifies that a user with the right to a set can get and list its clusters, and that an informer follows both
// clusters and rights.
func TestVisibleClusters_OfUser(t *testing.T) {
	set, clusters := harness.NewFleet(t, 2)
	_, others := harness.NewFleet(t, 2)
	user := harness.User(t, harness.Rule("get", "managedclustersets/clusters", set))
	if _, err := harness.Kubectl(t, "", "get", "managedclusters", "--as", user); err == nil {
		t.Error("the user may list all clusters, so nothing is shown here")
	}
	names := func() []string {
		out := strings.Fields(harness.MustKubectl(t, "", "get", visibleClusters, "--as", user, "-o", "name"))
		for i := range out {
			_, out[i], _ = strings.Cut(out[i], "/")
		}
		return out
	}
	if got := names(); !slices.Equal(got, clusters) {
		t.Errorf("the user sees %q, want %q", got, clusters)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "get", visibleClusters, "--as", user), "HUB ACCEPTED", clusters[0])
	out := harness.MustKubectl(t, "", "get", visibleClusters, clusters[0], "--as", user, "-o", "yaml")
	harness.Contains(t, out, "apiVersion: clusterview.open-cluster-management.io/v1", "kind: ManagedCluster", "fleet: "+set)
	if strings.Contains(out, "namespace:") || strings.Contains(out, "selfLink:") {
		t.Errorf("shows how it is kept: %s", out)
	}
	for _, name := range []string{others[0], "nowhere"} {
		out, err := harness.Kubectl(t, "", "get", visibleClusters, name, "--as", user)
		if err == nil || !strings.Contains(out, "managedclustersets/clusters") {
			t.Errorf("get of %s: %s, want a refusal that names the rules", name, out)
		}
	}
	if out, err := harness.Kubectl(t, "", "delete", visibleClusters, clusters[0], "--as", user); err == nil {
		t.Errorf("delete by who only sees the cluster: %s", out)
	}

	informer := newInformer(t, user, "v1", "managedclusters")
	informer.holds(clusters...)
	harness.Grant(t, harness.Hub(t), user+"-name", user, harness.Rule("get", "managedclusters", others[0]))
	informer.holds(append([]string{others[0]}, clusters...)...)
	// The cluster leaves the set.
	relabel := []byte(`{"metadata":{"labels":{"fleet":null}}}`)
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), clusters[1], types.MergePatchType, relabel, metav1.PatchOptions{}))(t)
	informer.holds(others[0], clusters[0])
	// The right to the set is revoked.
	rbac := harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1()
	if err := rbac.ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	informer.holds(others[0])
	if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), others[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	informer.holds()
}

// TestVisibleClusters_UpdatedByRightsOnSets verifies that a user who may write the clusters of a set can write its current clusters, with
// the checks for a write of the stored cluster.
func TestVisibleClusters_UpdatedByRightsOnSets(t *testing.T) {
	set, other, cluster, foreign := harness.Unique("set"), harness.Unique("set"), harness.Unique("cluster"), harness.Unique("cluster")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	harness.NewManagedCluster(t, cluster, map[string]string{harness.SetLabel: set})
	harness.NewManagedCluster(t, foreign, map[string]string{harness.SetLabel: other})
	writer := harness.User(t, harness.Rule("get,update,patch", "managedclustersets/clusters", set))
	viewer := harness.User(t, harness.Rule("get", "managedclustersets/clusters", set))
	patch := func(who, name, patch string, more ...string) (string, error) {
		return harness.Kubectl(t, "", append([]string{"patch", visibleClusters, name, "--as", who, "--type=merge", "-p", patch}, more...)...)
	}
	stored := func() string {
		return harness.MustKubectl(t, "", "get", "managedclusters", cluster, "-o", "jsonpath={.metadata.labels}{.metadata.finalizers}{.spec}")
	}
	before := stored()
	policy := harness.Unique("policy")
	harness.MustKubectl(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [cluster.open-cluster-management.io], apiVersions: [v1], resources: [managedclusters], operations: [UPDATE]}
  validations:
  - {expression: "!has(object.metadata.labels) || !('`+policy+`' in object.metadata.labels)", message: no such label}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+policy+`}
spec: {policyName: `+policy+`, validationActions: [Deny]}
`, "apply", "-f", "-")
	t.Cleanup(func() {
		for _, kind := range []string{"validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
			_ = harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", kind, policy).Run()
		}
	})
	harness.Eventually(t, "the policy holds for clusters that are seen by set", func(context.Context) (bool, error) {
		out, err := patch(writer, cluster, `{"metadata":{"labels":{"`+policy+`":"x"}}}`, "--dry-run=server")
		return harness.Holds(err != nil && strings.Contains(out, "no such label"), out)
	})
	for _, attack := range []struct{ who, name, patch, says string }{
		{writer, cluster, `{"metadata":{"labels":{"` + harness.SetLabel + `":"` + other + `"}}}`, harness.SetLabel + ":" + other},
		{writer, cluster, `{"spec":{"hubAcceptsClient":true}}`, "managedclusters/accept"},
		{writer, cluster, `{"metadata":{"finalizers":["cluster.open-cluster-management.io/x"]}}`, "managedclusters/finalizers"},
		{writer, cluster, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`, "delete"},
		{writer, foreign, `{"metadata":{"labels":{"a":"b"}}}`, "managedclustersets/clusters"},
		{viewer, cluster, `{"metadata":{"labels":{"a":"b"}}}`, "managedclustersets/clusters"},
	} {
		if out, err := patch(attack.who, attack.name, attack.patch); err == nil || !strings.Contains(out, attack.says) || !strings.Contains(out, "orbidden") {
			t.Errorf("%s of %s: %s, want a refusal that says %s", attack.patch, attack.name, out, attack.says)
		}
	}
	if after := stored(); after != before {
		t.Errorf("the cluster is %s, and was %s", after, before)
	}
	harness.MustKubectl(t, "", "label", visibleClusters, cluster, "owner=team", "--as", writer)
	out := harness.MustKubectl(t, "", "get", visibleClusters, cluster, "-o", "yaml", "--as", writer)
	harness.MustKubectl(t, strings.Replace(out, "owner: team", "owner: squad", 1), "replace", "-f", "-", "--as", writer)
	harness.Contains(t, stored(), `"owner":"squad"`)
	if out, err := harness.Kubectl(t, strings.Replace(out, "owner: team", "owner: late", 1), "replace", "-f", "-", "--as", writer); err == nil ||
		!strings.Contains(out, "Conflict") {
		t.Errorf("a replace of what was read before: %s", out)
	}
	// The cluster leaves the set.
	harness.MustKubectl(t, "", "label", "managedclusters", cluster, "--overwrite", harness.SetLabel+"="+other)
	if out, err := patch(writer, cluster, `{"metadata":{"labels":{"a":"b"}}}`); err == nil {
		t.Errorf("a cluster that has left the set is written: %s", out)
	}
}

// TestVisibleClusters_DeletedByRightsOnSets verifies that a user who may delete the clusters of a set can delete its current clusters.
// Dependents are deleted with their cluster, and not before: Kubernetes' garbage collector follows the stored clusters only, which have the same UIDs
// as in the view.
func TestVisibleClusters_DeletedByRightsOnSets(t *testing.T) {
	set, other, gone, stays, foreign := harness.Unique("set"), harness.Unique("set"), harness.Unique("cluster"), harness.Unique("cluster"), harness.Unique("cluster")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	for name, in := range map[string]string{gone: set, stays: set, foreign: other} {
		harness.NewManagedCluster(t, name, map[string]string{harness.SetLabel: in})
	}
	deleter := harness.User(t, harness.Rule("get,delete", "managedclustersets/clusters", set))
	writer := harness.User(t, harness.Rule("get,update,patch", "managedclustersets/clusters", set))
	maps := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().ConfigMaps("default")
	for _, name := range []string{gone, stays} {
		owner := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
		harness.Must(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster", Name: name, UID: owner.UID,
		}}}}, metav1.CreateOptions{}))(t)
		t.Cleanup(func() { _ = maps.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	}
	collected := func(name string) {
		t.Helper()
		harness.Eventually(t, "what depends on the cluster goes with it", func(ctx context.Context) (bool, error) {
			_, err := maps.Get(ctx, name, metav1.GetOptions{})
			return harness.Holds(apierrors.IsNotFound(err), err)
		})
	}
	for who, name := range map[string]string{writer: stays, deleter: foreign} {
		if out, err := harness.Kubectl(t, "", "delete", visibleClusters, name, "--as", who); err == nil || !strings.Contains(out, "managedclustersets/clusters") {
			t.Errorf("delete of %s by %s: %s", name, who, out)
		}
	}
	if out, err := harness.Kubectl(t, "", "delete", "--raw", "/apis/clusterview.open-cluster-management.io/v1/managedclusters"); err == nil {
		t.Errorf("all clusters are deleted at once: %s", out)
	}
	harness.MustKubectl(t, "", "delete", visibleClusters, gone, "--as", deleter, "--dry-run=server")
	harness.MustKubectl(t, "", "get", "managedclusters", gone)
	harness.MustKubectl(t, "", "delete", visibleClusters, gone, "--as", deleter)
	collected(gone)

	// The cluster leaves the set, and thereby the view of users of the set.
	harness.MustKubectl(t, "", "label", "managedclusters", stays, "--overwrite", harness.SetLabel+"="+other)
	if out, err := harness.Kubectl(t, "", "delete", visibleClusters, stays, "--as", deleter); err == nil {
		t.Errorf("a cluster that has left the set is deleted: %s", out)
	}
	harness.Must(maps.Get(t.Context(), stays, metav1.GetOptions{}))(t)
	harness.MustKubectl(t, "", "delete", "managedclusters", stays)
	collected(stays)
}
