// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// TestPrune_OnBothClusters compares the objects that are deleted on each cluster after all components are removed from the spec.
func TestPrune_OnBothClusters(t *testing.T) {
	cm := detached("first")
	cm.Spec.Clusterhub.Components = []string{componentProvider, "leftovers"}
	before := mustPlan(t, cm)
	has := (&pass{cm: cm, plan: before}).desired()
	cm.Spec.Clusterhub.Components = nil
	owner, deleted := ownerOf(cm, "management"), map[string][]string{}
	for _, o := range has {
		o.SetLabels(owner.Labels)
	}
	sideOf := func(cluster string) *side {
		return newSide(cluster, interceptor.NewClient(nil, interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				deleted[cluster] = append(deleted[cluster], apply.IDOf(o).String())
				return nil
			},
		}), kinds, owner, error.Error)
	}
	p := &pass{
		cm: cm, plan: mustPlan(t, cm), hub: sideOf("hub"), management: sideOf("management cluster"),
		hubHas: slices.Concat(before.hub, before.services), has: has[len(before.hub) : len(has)-len(before.services)],
	}
	if err := p.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][]string{
		"hub": {
			"ClusterRole clusterhub:hub-controller-manager:leftovers",
			"ClusterRoleBinding clusterhub:cluster-provider-kubeconfig",
			"ClusterRoleBinding clusterhub:hub-controller-manager:leftovers",
			"Role openmcp-system/cluster-provider-kubeconfig",
			"RoleBinding clusterhub-access/cluster-provider-kubeconfig",
			"RoleBinding openmcp-system/cluster-provider-kubeconfig",
			"ServiceAccount openmcp-system/cluster-provider-kubeconfig",
			"ValidatingAdmissionPolicy provider-configurations.clusterhub.dev",
			"ValidatingAdmissionPolicy provider-secrets.clusterhub.dev",
			"ValidatingAdmissionPolicyBinding provider-configurations.clusterhub.dev",
			"ValidatingAdmissionPolicyBinding provider-secrets.clusterhub.dev",
		},
		"management cluster": {
			"Deployment first-open-cluster-management-hub/cluster-provider-kubeconfig",
			"NetworkPolicy first-open-cluster-management-hub/cluster-provider-kubeconfig",
			"PodDisruptionBudget first-open-cluster-management-hub/cluster-provider-kubeconfig",
			"Secret first-open-cluster-management-hub/cluster-provider-kubeconfig-kubeconfig",
			"ServiceAccount first-open-cluster-management-hub/cluster-provider-kubeconfig",
		},
	} {
		slices.Sort(deleted[cluster])
		if !slices.Equal(deleted[cluster], want) {
			t.Errorf("on the %s\n%s\nare deleted, want\n%s", cluster, strings.Join(deleted[cluster], "\n"), strings.Join(want, "\n"))
		}
	}
}
