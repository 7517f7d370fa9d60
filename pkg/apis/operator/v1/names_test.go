// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKlusterlet_Namespaces(t *testing.T) {
	for _, c := range []struct {
		mode                      InstallMode
		namespace, agent, managed string
		detached, singleton       bool
	}{
		{mode: "", agent: "open-cluster-management-agent", managed: "open-cluster-management-agent"},
		{mode: "Default", agent: "open-cluster-management-agent", managed: "open-cluster-management-agent"},
		{mode: "Default", namespace: "open-cluster-management-x", agent: "open-cluster-management-x", managed: "open-cluster-management-x"},
		{mode: "Singleton", namespace: "open-cluster-management-x", agent: "open-cluster-management-x", managed: "open-cluster-management-x", singleton: true},
		{mode: "Detached", agent: "k-open-cluster-management-agent", managed: "k-open-cluster-management-agent", detached: true},
		{mode: "Detached", namespace: "open-cluster-management-x", agent: "k-open-cluster-management-agent", managed: "k-open-cluster-management-agent", detached: true},
		{mode: "Hosted", agent: "k", managed: "open-cluster-management-agent", detached: true},
		{mode: "Hosted", namespace: "open-cluster-management-x", agent: "k", managed: "open-cluster-management-x", detached: true},
		{mode: "SingletonHosted", namespace: "open-cluster-management-x", agent: "k", managed: "open-cluster-management-x", detached: true, singleton: true},
	} {
		k := &Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: "k"}}
		k.Spec.Namespace, k.Spec.DeployOption.Mode = c.namespace, c.mode
		if k.AgentNamespace() != c.agent || k.ManagedNamespace() != c.managed || k.IsDetached() != c.detached || k.IsSingleton() != c.singleton {
			t.Errorf("%q with namespace %q: the agent is in %s, on the managed cluster in %s, detached %v, singleton %v; want %+v",
				c.mode, c.namespace, k.AgentNamespace(), k.ManagedNamespace(), k.IsDetached(), k.IsSingleton(), c)
		}
	}
}

func TestClusterManager_Namespaces(t *testing.T) {
	for mode, want := range map[InstallMode]string{
		"": "clusterhub-system", "Default": "clusterhub-system", "Hosted": "c", "Detached": "c-open-cluster-management-hub",
	} {
		c := &ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		c.Spec.DeployOption.Mode = mode
		if got := c.ServerNamespace(); got != want || c.IsDetached() != (want != "clusterhub-system") {
			t.Errorf("%q: %s, detached %v; want %s", mode, got, c.IsDetached(), want)
		}
	}
}
