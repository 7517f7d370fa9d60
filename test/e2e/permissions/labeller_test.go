// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestPermissions_TeamLabelsAndSeesOwnSet grants the roles of docs/permissions.md by its commands: their holder can add clusters to one set and
// see it, and has no other access.
func TestPermissions_TeamLabelsAndSeesOwnSet(t *testing.T) {
	set, other, mine, foreign, who := harness.Unique("set"), harness.Unique("set"), harness.Unique("cluster"), harness.Unique("cluster"), harness.Unique("user")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	harness.NewManagedCluster(t, mine, nil)
	harness.NewManagedCluster(t, foreign, map[string]string{harness.SetLabel: other})
	for i, rights := range [][]string{
		{"--verb=create", "--resource=managedclusters." + harness.ClusterGroup + "/label", "--resource-name=" + harness.SetLabel + ":" + set},
		{"--verb=update,patch", "--resource=managedclusters." + harness.ClusterGroup + "/label"},
		{"--verb=get", "--resource=managedclustersets." + harness.ClusterGroup, "--resource-name=" + set},
	} {
		role := fmt.Sprintf("%s-%d", set, i)
		harness.MustKubectl(t, "", append([]string{"create", "clusterrole", role}, rights...)...)
		harness.MustKubectl(t, "", "create", "clusterrolebinding", role, "--clusterrole="+role, "--user="+who)
		t.Cleanup(func() {
			_ = harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "clusterrole,clusterrolebinding", role).Run()
		})
	}
	client := harness.Ours(t, harness.Hub(t).UserConfig(who, "system:authenticated"))
	label := func(cluster, set string) error {
		_, err := client.ClusterV1().ManagedClusters().Patch(t.Context(), cluster, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, harness.SetLabel, set), metav1.PatchOptions{}, "label")
		return err
	}
	harness.Eventually(t, "the cluster is in the set", func(context.Context) (bool, error) { return true, label(mine, set) })
	seen := func() string {
		members, err := client.ViewV1alpha1().ClusterSetMembers().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range members.Items {
			names = append(names, m.Name)
		}
		return strings.Join(names, " ")
	}
	harness.Eventually(t, "the team sees its set", func(context.Context) (bool, error) { return seen() == mine+"."+set, nil })
	harness.Eventually(t, "an event says who moved the cluster", func(ctx context.Context) (bool, error) {
		list, err := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Events(metav1.NamespaceDefault).List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=ManagedCluster,reason=ClusterSetsChanged,involvedObject.name=" + mine})
		if err != nil {
			return false, err
		}
		want := fmt.Sprintf("user %q took it out of set default and put it into set %s", who, set)
		return harness.Holds(len(list.Items) == 1 && list.Items[0].Message == want, list.Items)
	})
	// The clusters of others and the selector are forbidden.
	harness.WantForbidden(t, label(foreign, set), harness.SetLabel+":"+other)
	harness.WantForbidden(t, label(mine, other), harness.SetLabel+":"+other)
	harness.WantForbidden(t, label(foreign, "default"), harness.SetLabel+":"+other)
	all := []byte(`{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{}}}}`)
	_, err := client.ClusterV1beta2().ManagedClusterSets().Patch(t.Context(), set, types.MergePatchType, all, metav1.PatchOptions{})
	harness.WantForbidden(t, err)
	if got := seen(); got != mine+"."+set {
		t.Errorf("the team sees %q", got)
	}
	// The team can move its own cluster back, and no other.
	if err := errors.Join(label(mine, "default"), label(mine, set)); err != nil {
		t.Errorf("the team cannot give a cluster back: %v", err)
	}
	// A user with the right to write the set could see every cluster, as the table states.
	harness.Grant(t, harness.Hub(t), harness.Unique("writer"), who, harness.Rule("patch", "managedclustersets", set))
	harness.Must(client.ClusterV1beta2().ManagedClusterSets().Patch(t.Context(), set, types.MergePatchType, all, metav1.PatchOptions{}))(t)
	harness.Eventually(t, "the team sees every cluster", func(context.Context) (bool, error) {
		return strings.Contains(seen(), foreign+"."+set), nil
	})
}
