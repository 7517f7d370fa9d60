// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

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

func newRuleStore(r *Rules) *ruleStore[*rbacv1.ClusterRoleBinding] {
	return &ruleStore[*rbacv1.ClusterRoleBinding]{
		rules: r, progress: &r.bindings, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRoleBinding, remove: (*rbac.Index).DeleteClusterRoleBinding,
	}
}

// TestRuleStore_DeletionFromListHasVersion: a replica that learns of a deletion from a list, because it was disconnected, is as far ahead
// as one that observed it.
func TestRuleStore_DeletionFromListHasVersion(t *testing.T) {
	r := newRules(nil, fake.NewClientset().RbacV1())
	s := newRuleStore(r)
	must(t, s.Replace([]any{binding("x", 3), binding("y", 5)}, "8"))
	if want := (progress{known: 8, changed: 5, listed: true}); r.bindings != want {
		t.Errorf("after the first list: %+v, want %+v", r.bindings, want)
	}
	must(t, s.Bookmark("12"))
	if want := (progress{known: 12, changed: 5, listed: true}); r.bindings != want {
		t.Errorf("after a bookmark: %+v, want %+v", r.bindings, want)
	}
	must(t, s.Replace([]any{binding("x", 3)}, "20"))
	if want := (progress{known: 20, changed: 20, listed: true}); r.bindings != want {
		t.Errorf("after a list without y: %+v, want %+v", r.bindings, want)
	}
	must(t, s.Replace([]any{binding("x", 3)}, "30"))
	if want := (progress{known: 30, changed: 20, listed: true}); r.bindings != want {
		t.Errorf("after a list without news: %+v, want %+v", r.bindings, want)
	}
	must(t, s.Delete(binding("x", 31)))
	must(t, s.Add(binding("z", 32)))
	must(t, s.Update(binding("z", 33)))
	if want := (progress{known: 33, changed: 33, listed: true}); r.bindings != want {
		t.Errorf("after events: %+v, want %+v", r.bindings, want)
	}
	if len(s.names) != 1 {
		t.Errorf("remembers %v, want z", s.names)
	}
}

// TestRules_RequireBothKinds: no state exists while one of the two kinds has not been listed.
func TestRules_RequireBothKinds(t *testing.T) {
	r := newRules(nil, fake.NewClientset().RbacV1())
	bindings := newRuleStore(r)
	must(t, bindings.Replace(nil, "1"))
	r.learn()
	if r.Latest() != nil {
		t.Error("is ready without the roles")
	}
	roles := &ruleStore[*rbacv1.ClusterRole]{
		rules: r, progress: &r.roles, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRole, remove: (*rbac.Index).DeleteClusterRole,
	}
	must(t, roles.Replace(nil, "1"))
	r.learn()
	if r.Latest() == nil {
		t.Error("is not ready with both")
	}
	if bindings.Add(&rbacv1.ClusterRole{}) == nil || bindings.Replace([]any{"x"}, "2") == nil || bindings.Replace(nil, "x") == nil {
		t.Error("takes what are no bindings")
	}
}
