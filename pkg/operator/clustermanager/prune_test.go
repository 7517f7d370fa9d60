// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// checkPrune removes components from the spec. All their objects are deleted on both clusters, except their namespaces.
func checkPrune(t *testing.T, w *world) {
	t.Helper()
	both := func() map[string]string {
		all := made(t, w.hub, "first")
		maps.Copy(all, made(t, w.management, "first"))
		return all
	}
	namespace := detached("first").ServerNamespace()
	before := both()
	const stays = "Namespace /openmcp-system"
	goes := []string{
		"Deployment " + namespace + "/cluster-provider-kubeconfig", "Secret " + namespace + "/cluster-provider-kubeconfig-kubeconfig",
		"ServiceAccount " + namespace + "/cluster-provider-kubeconfig", "ServiceAccount openmcp-system/cluster-provider-kubeconfig",
		"ClusterRole /clusterhub:hub-controller-manager:leftovers", "ClusterRoleBinding /clusterhub:hub-controller-manager:leftovers",
	}
	for _, name := range append(goes, stays) {
		if before[name] == "" {
			t.Fatalf("with its components there is no %s but %q", name, slices.Sorted(maps.Keys(before)))
		}
	}
	w.change("first", func(cm *operatorv1.ClusterManager) { cm.Spec.Clusterhub.Components = nil })
	var after map[string]string
	eventually(t, "what belongs to the components is gone", func() string {
		after = both()
		return strings.Join(slices.DeleteFunc(slices.Clone(goes), func(name string) bool { return after[name] == "" }), ", ")
	})
	if after[stays] == "" {
		t.Errorf("%s is gone", stays)
	}
	w.condition("first", operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
	for _, related := range w.read("first").Status.RelatedResources {
		if related.Name == "cluster-provider-kubeconfig" || strings.HasSuffix(related.Name, ":leftovers") {
			t.Errorf("the inventory has %+v still", related)
		}
	}
}
