// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func binding(name string, version int) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
}

func newRuleStore(a *access) *ruleStore[*rbacv1.ClusterRoleBinding] {
	return &ruleStore[*rbacv1.ClusterRoleBinding]{
		access: a, progress: &a.bindings, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRoleBinding, remove: (*rbac.Index).DeleteClusterRoleBinding,
	}
}

// Who learns of a deletion from a list, because it was cut off meanwhile, is no less ahead than who saw it happen.
func TestRuleStore_ADeletionThatAListTellsHasItsVersion(t *testing.T) {
	a := newAccess(nil, fake.NewClientset().RbacV1())
	s := newRuleStore(a)
	must(t, s.Replace([]any{binding("x", 3), binding("y", 5)}, "8"))
	if want := (progress{known: 8, changed: 5, listed: true}); a.bindings != want {
		t.Errorf("after the first list: %+v, want %+v", a.bindings, want)
	}
	must(t, s.Bookmark("12"))
	if want := (progress{known: 12, changed: 5, listed: true}); a.bindings != want {
		t.Errorf("after a bookmark: %+v, want %+v", a.bindings, want)
	}
	must(t, s.Replace([]any{binding("x", 3)}, "20"))
	if want := (progress{known: 20, changed: 20, listed: true}); a.bindings != want {
		t.Errorf("after a list without y: %+v, want %+v", a.bindings, want)
	}
	must(t, s.Replace([]any{binding("x", 3)}, "30"))
	if want := (progress{known: 30, changed: 20, listed: true}); a.bindings != want {
		t.Errorf("after a list without news: %+v, want %+v", a.bindings, want)
	}
	must(t, s.Delete(binding("x", 31)))
	must(t, s.Add(binding("z", 32)))
	must(t, s.Update(binding("z", 33)))
	if want := (progress{known: 33, changed: 33, listed: true}); a.bindings != want {
		t.Errorf("after events: %+v, want %+v", a.bindings, want)
	}
	if len(s.names) != 1 {
		t.Errorf("remembers %v, want z", s.names)
	}
}

// Nothing is said of the rules while one of the two kinds has not been listed.
func TestAccess_HalfOfTheRulesAreNoRules(t *testing.T) {
	a := newAccess(nil, fake.NewClientset().RbacV1())
	bindings := newRuleStore(a)
	must(t, bindings.Replace(nil, "1"))
	a.noteSnapshot()
	if a.synced() {
		t.Error("is ready without the roles")
	}
	roles := &ruleStore[*rbacv1.ClusterRole]{
		access: a, progress: &a.roles, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRole, remove: (*rbac.Index).DeleteClusterRole,
	}
	must(t, roles.Replace(nil, "1"))
	a.noteSnapshot()
	if !a.synced() {
		t.Error("is not ready with both")
	}
	if bindings.Add(&rbacv1.ClusterRole{}) == nil || bindings.Replace([]any{"x"}, "2") == nil || bindings.Replace(nil, "x") == nil {
		t.Error("takes what are no bindings")
	}
}
