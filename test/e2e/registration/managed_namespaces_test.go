// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// deployedAgent creates the objects that join creates in a cluster, except the Deployment, and returns a kubeconfig with the agent's rights.
func (m *managed) deployedAgent(t *testing.T) string {
	t.Helper()
	objects := harness.Must(deploy.Agent{}.Objects())(t)
	var documents bytes.Buffer
	for _, o := range objects {
		if o.GetKind() != "Deployment" && o.GetKind() != "Secret" {
			documents.Write(harness.Must(json.Marshal(o))(t))
		}
	}
	cmd := m.Kubectl(t.Context(), "apply", "-f", "-")
	cmd.Stdin = &documents
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	token := harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().ServiceAccounts(registration.AgentNamespace).CreateToken(t.Context(),
		registration.AgentServiceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	config := harness.Must(clientcmd.LoadFromFile(m.AdminKubeconfig()))(t)
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	user.Token, user.ClientCertificate, user.ClientCertificateData, user.ClientKey, user.ClientKeyData = token.Status.Token, "", nil, "", nil
	file := filepath.Join(t.TempDir(), "agent.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// expectNamespaces waits until the hub has exactly these entries of the cluster, "set/namespace", each with the status of its
// condition NamespaceAvailable and its reason.
func (m *managed) expectNamespaces(t *testing.T, want map[string]string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the namespaces of %s are %v", m.name, want), func(context.Context) (bool, error) {
		got := map[string]string{}
		for _, n := range m.cluster(t).Status.ManagedNamespaces {
			got[n.ClusterSet+"/"+n.Name] = ""
			if c := meta.FindStatusCondition(n.Conditions, "NamespaceAvailable"); c != nil {
				got[n.ClusterSet+"/"+n.Name] = string(c.Status) + " " + c.Reason
			}
		}
		return harness.Holds(maps.Equal(got, want), got)
	})
}

// expectLabels waits until exactly these namespaces of the cluster have the hub's label, with these values.
func (m *managed) expectLabels(t *testing.T, want map[string]string) {
	t.Helper()
	// The label is upstream's: its suffix is the first 63 characters of the SHA-256 of the hub's address.
	label := "clusterset.open-cluster-management.io/" + fmt.Sprintf("%x", sha256.Sum256([]byte(m.hub.AdminConfig().Host)))[:63]
	harness.Eventually(t, fmt.Sprintf("the labels of the namespaces of %s are %v", m.name, want), func(ctx context.Context) (bool, error) {
		got := map[string]string{}
		list, err := harness.Kube(t, m.AdminConfig()).CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			got[list.Items[i].Name] = list.Items[i].Labels[label]
		}
		return harness.Holds(maps.Equal(got, want), got)
	})
}

// TestManagedNamespaces_FromSetToClusters runs an agent with only the rights that join grants to it.
func TestManagedNamespaces_FromSetToClusters(t *testing.T) {
	m := newManaged(t, harness.Hub(t))
	sets := harness.Ours(t, m.hub.AdminConfig()).ClusterV1beta2().ManagedClusterSets()
	asks := func(name string, namespaces ...string) []byte {
		s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, namespace := range namespaces {
			s.Spec.ManagedNamespaces = append(s.Spec.ManagedNamespaces, clusterv1beta2.ManagedNamespaceConfig{Name: namespace})
		}
		_, err := sets.Create(t.Context(), s, metav1.CreateOptions{})
		tolerate(t, err)
		return harness.Must(json.Marshal(map[string]any{"spec": map[string]any{"managedNamespaces": s.Spec.ManagedNamespaces}}))(t)
	}
	put := func(name string, namespaces ...string) {
		t.Helper()
		harness.Must(sets.Patch(t.Context(), name, types.MergePatchType, asks(name, namespaces...), metav1.PatchOptions{}))(t)
	}
	move := func(set string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, harness.SetLabel, set)
		harness.Must(m.clusters(t).Patch(t.Context(), m.name, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	}
	put("dev", "team-a", "shared", "kube-system", "default", registration.AgentNamespace)
	put("prod", "live")
	harness.Eventually(t, "the set global is there", func(ctx context.Context) (bool, error) {
		_, err := sets.Get(ctx, "global", metav1.GetOptions{})
		return err == nil, err
	})
	put("global", "shared")

	// One of the namespaces already exists, and belongs to a team.
	cluster := harness.Kube(t, m.AdminConfig())
	shared := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared", Labels: map[string]string{"team": "payments"}}}
	harness.Must(cluster.CoreV1().Namespaces().Create(t.Context(), shared, metav1.CreateOptions{}))(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	harness.Must(cluster.CoreV1().ConfigMaps("shared").Create(t.Context(), theirs, metav1.CreateOptions{}))(t)
	before := harness.Must(cluster.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t)

	rights := m.deployedAgent(t)
	stop := m.agent(t, "--spoke-kubeconfig="+rights)
	harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })
	move("dev")
	m.accepted(t, true)
	const applied, failed = "True NamespaceApplied", "False NamespaceApplyFailed"
	m.expectNamespaces(t, map[string]string{"dev/team-a": applied, "dev/shared": applied, "global/shared": applied,
		"dev/kube-system": failed, "dev/default": failed, "dev/" + registration.AgentNamespace: failed})
	m.expectLabels(t, map[string]string{"team-a": "true", "shared": "true"})

	// A namespace is removed from the set, and the cluster from the set.
	put("dev", "shared")
	m.expectNamespaces(t, map[string]string{"dev/shared": applied, "global/shared": applied})
	m.expectLabels(t, map[string]string{"team-a": "false", "shared": "true"})
	move("prod")
	m.expectNamespaces(t, map[string]string{"prod/live": applied, "global/shared": applied})
	m.expectLabels(t, map[string]string{"team-a": "false", "shared": "true", "live": "true"})

	// A user with the agent's identity might try other writes on the cluster.
	agent := harness.Kube(t, harness.Must(clientcmd.BuildConfigFromFlags("", rights))(t))
	namespaces := agent.CoreV1().Namespaces()
	for what, err := range map[string]error{
		"delete one that it has made": namespaces.Delete(t.Context(), "live", metav1.DeleteOptions{}),
		"replace one":                 harness.ErrorOf(namespaces.Update(t.Context(), shared, metav1.UpdateOptions{})),
		"read one":                    harness.ErrorOf(namespaces.Get(t.Context(), "shared", metav1.GetOptions{})),
		"see what is in one":          harness.ErrorOf(agent.CoreV1().ConfigMaps("shared").List(t.Context(), metav1.ListOptions{})),
		"empty one": agent.CoreV1().ConfigMaps("live").DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the agent may %s: %v, want 403", what, err)
		}
	}

	stop()
	out, err := exec.CommandContext(t.Context(), harness.Binary(t, "hub-agent"), "unjoin", "--spoke-kubeconfig="+rights, "--timeout="+harness.Timeout.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("unjoin: %v: %s", err, out)
	}
	m.expectLabels(t, map[string]string{"team-a": "false", "shared": "false", "live": "false"})

	// All previous objects are unchanged, except for the label.
	after := harness.Must(cluster.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t)
	for _, b := range before.Items {
		at := slices.IndexFunc(after.Items, func(a corev1.Namespace) bool { return a.UID == b.UID && a.DeletionTimestamp.IsZero() })
		if at < 0 {
			t.Errorf("namespace %s is gone", b.Name)
			continue
		}
		labels := after.Items[at].Labels
		maps.DeleteFunc(labels, func(key, _ string) bool {
			return strings.HasPrefix(key, "clusterset.open-cluster-management.io/") && b.Name == "shared"
		})
		if b.Name != registration.AgentNamespace && !maps.Equal(labels, b.Labels) {
			t.Errorf("namespace %s had the labels %v, and has %v", b.Name, b.Labels, labels)
		}
	}
	harness.Must(cluster.CoreV1().ConfigMaps("shared").Get(t.Context(), theirs.Name, metav1.GetOptions{}))(t)

	put("global") // the set has the clusters of other tests
}
