// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const visibleClusters = "managedclusters.clusterview.open-cluster-management.io"

// Who has a set sees the clusters in it, one by one and in a list, and an informer follows both clusters and rights.
func TestVisibleClusters_AreThoseOfTheUser(t *testing.T) {
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
	for _, verb := range [][]string{{"delete", visibleClusters, clusters[0]}, {"label", visibleClusters, clusters[0], "a=b"}} {
		if out, err := harness.Kubectl(t, "", verb...); err == nil {
			t.Errorf("%v of an admin: %s, and the resource is read only", verb, out)
		}
	}

	informer := newInformer(t, user, "v1", "managedclusters")
	informer.holds(clusters...)
	harness.Grant(t, harness.Hub(t), user+"-name", user, harness.Rule("get", "managedclusters", others[0]))
	informer.holds(append([]string{others[0]}, clusters...)...)
	// It leaves the set.
	relabel := []byte(`{"metadata":{"labels":{"fleet":null}}}`)
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), clusters[1], types.MergePatchType, relabel, metav1.PatchOptions{}))(t)
	informer.holds(others[0], clusters[0])
	// The right to the set is taken away.
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
