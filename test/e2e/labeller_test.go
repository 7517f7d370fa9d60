// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The roles of docs/permissions.md, made by its commands: their holder puts clusters into one set, sees it, and sees no more,
// whatever else is tried.
func TestPermissions_ATeamLabelsAndSeesItsSetOnly(t *testing.T) {
	set, other, mine, foreign, who := unique("set"), unique("set"), unique("cluster"), unique("cluster"), unique("user")
	newSet(t, set)
	newSet(t, other)
	newCluster(t, mine, nil)
	newCluster(t, foreign, map[string]string{setLabel: other})
	for i, rights := range [][]string{
		{"--verb=create", "--resource=managedclusters." + clusterGroup + "/label", "--resource-name=" + setLabel + ":" + set,
			// Out of which clusters are taken.
			"--resource-name=" + setLabel + ":default"},
		{"--verb=update,patch", "--resource=managedclusters." + clusterGroup + "/label"},
		{"--verb=get", "--resource=managedclustersets." + clusterGroup, "--resource-name=" + set},
	} {
		role := fmt.Sprintf("%s-%d", set, i)
		mustKubectl(t, "", append([]string{"create", "clusterrole", role}, rights...)...)
		mustKubectl(t, "", "create", "clusterrolebinding", role, "--clusterrole="+role, "--user="+who)
		t.Cleanup(func() {
			_ = hub.Kubectl(context.WithoutCancel(t.Context()), "delete", "clusterrole,clusterrolebinding", role).Run()
		})
	}
	client := ours(t, hub.UserConfig(who, "system:authenticated"))
	label := func(cluster, set string) error {
		_, err := client.ClusterV1().ManagedClusters().Patch(t.Context(), cluster, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set), metav1.PatchOptions{}, "label")
		return err
	}
	eventually(t, "the cluster is in the set", func(context.Context) (bool, error) { return true, label(mine, set) })
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
	eventually(t, "the team sees its set", func(context.Context) (bool, error) { return seen() == mine+"."+set, nil })
	// Neither the clusters of others nor the selector.
	wantForbidden(t, label(foreign, set), setLabel+":"+other)
	wantForbidden(t, label(mine, other), setLabel+":"+other)
	all := []byte(`{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{}}}}`)
	_, err := client.ClusterV1beta2().ManagedClusterSets().Patch(t.Context(), set, types.MergePatchType, all, metav1.PatchOptions{})
	wantForbidden(t, err)
	if got := seen(); got != mine+"."+set {
		t.Errorf("the team sees %q", got)
	}
	// With the right to write the set it would see every cluster, as the table says.
	grant(t, hub, unique("writer"), who, rule("patch", "managedclustersets", set))
	must(client.ClusterV1beta2().ManagedClusterSets().Patch(t.Context(), set, types.MergePatchType, all, metav1.PatchOptions{}))(t)
	eventually(t, "the team sees every cluster", func(context.Context) (bool, error) {
		return strings.Contains(seen(), foreign+"."+set), nil
	})
}
