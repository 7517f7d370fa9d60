// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentroles

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wantWorks checks whether the role for works is bound to all agents.
func (f *fixture) wantWorks(what string, want bool) {
	f.Helper()
	f.reconcile()
	binding := &rbacv1.ClusterRoleBinding{}
	err := f.Get(f.Context(), client.ObjectKey{Name: WorksClusterRole}, binding)
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	if got := err == nil && asWanted(binding); got != want || err == nil && !want {
		f.Errorf("%s: the role for works is bound: %t, want %t (%+v)", what, got, want, binding)
	}
}

// TestReconcile_BindsWorkRoleOnlyWhileWorksAreServed verifies that in each mode, since only hub-apiserver limits an agent to the
// works of its own cluster, and only if that is accepted, which is in the other group.
func TestReconcile_BindsWorkRoleOnlyWhileWorksAreServed(t *testing.T) {
	elsewhere := &apiregistrationv1.ServiceReference{Namespace: "eve", Name: "hub-apiserver"}
	for _, mode := range []string{Shared, PerCluster} {
		for what, change := range map[string]struct{ do, undo func(f *fixture) }{
			"a CRD of another version of works": {
				func(f *fixture) { f.add(ofWorks("v2", nil)) }, func(f *fixture) { f.remove(ofWorks("v2", nil)) },
			},
			"works of another Service": {
				func(f *fixture) { f.add(ofWorks("v2", elsewhere)) }, func(f *fixture) { f.remove(ofWorks("v2", nil)) },
			},
			"a CRD of the clusters": {
				func(f *fixture) { f.add(service("v2", nil)) }, func(f *fixture) { f.remove(service("v2", nil)) },
			},
			"no works": {
				func(f *fixture) { f.remove(ofWorks("v1", nil), ofWorks("v1alpha1", nil)) }, func(f *fixture) { f.add(ofWorks("v1", hubAPIServer())) },
			},
		} {
			f := newFixture(t)
			f.options.Roles = mode
			f.wantWorks(mode, true)
			change.do(f)
			f.wantWorks(mode+", "+what, false)
			change.undo(f)
			f.wantWorks(mode+", "+what+", and back", true)
		}
	}
}

// An older hub-apiserver may not limit agents: no binding is created for it.
func TestReconcile_BindsNoWorkRoleBeforeAgentsAreRestricted(t *testing.T) {
	f := newFixture(t)
	f.remove(service("v1alpha1", nil))
	f.wantWorks("older", false)
	f.add(holding(apiregistrationv1.ConditionTrue))
	f.wantWorks("no longer", true)
}

// TestReconcile_WithoutWorks verifies that the other roles do not depend on which server has the works.
func TestReconcile_WithoutWorks(t *testing.T) {
	f := newFixture(t)
	f.add(ofWorks("v2", nil))
	f.wantWorks("works are served by a CRD", false)
	f.want("works are served by a CRD", ClusterRole)
	if ok, err := f.options.InForce(t.Context(), f, f); !ok || err != nil {
		t.Errorf("what a role of one cluster would give is in force: %t, %v", ok, err)
	}
}
