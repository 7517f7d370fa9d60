// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// front represents the kube-apiserver that has the RBAC rules. It counts resource versions like one.
type front struct {
	t         testing.TB
	clientset *fake.Clientset
	version   atomic.Int64

	mu    sync.Mutex
	rules map[string][]rbacv1.PolicyRule
}

func newFront(t testing.TB) *front {
	return &front{t: t, clientset: fake.NewClientset(), rules: map[string][]rbacv1.PolicyRule{}}
}

// client returns one replica's client. ready waits until the client gets every change: the fake loses those between its list and its watch.
func (f *front) client() (rules rbacclient.RbacV1Interface, ready func(testing.TB)) {
	client := fake.NewClientset()
	var watches atomic.Int32
	tracker := f.clientset.Tracker()
	client.PrependReactor("*", "*", clienttesting.ObjectReaction(tracker))
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if a, ok := action.(clienttesting.WatchActionImpl); ok {
			options = a.ListOptions
		}
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
		watches.Add(1)
		return true, w, err
	})
	return fakeRules{client.RbacV1()}, func(t testing.TB) {
		t.Helper()
		eventually(t, "the RBAC rules are watched", func() (bool, string) {
			return watches.Load() >= 2, strconv.Itoa(int(watches.Load())) + " watches"
		})
	}
}

// fakeRules tells reflectors which features a fake client lacks.
type fakeRules struct{ rbacclient.RbacV1Interface }

func (fakeRules) IsWatchListSemanticsUnSupported() bool { return true }

// allow lets a user (or, when the name starts with "group:", a group) get the named sets, and no others; "*" stands for all sets.
func (f *front) allow(who string, sets ...string) {
	f.t.Helper()
	f.grant(who, getting("managedclustersets", sets...))
}

// allowClusters lets a user or a group get the named clusters, and those of the named sets, and nothing else.
func (f *front) allowClusters(who string, names, sets []string) {
	f.t.Helper()
	f.grant(who, getting("managedclusters", names...), getting("managedclustersets/clusters", sets...))
}

// getting returns the right to get the named objects, "*" for all. Without names it grants nothing.
func getting(resource string, names ...string) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{cluster.GroupName}, Resources: []string{resource}, ResourceNames: slices.Clone(names),
	}
	switch {
	case slices.Contains(names, "*"):
		rule.ResourceNames = nil
	case len(names) == 0:
		rule.Verbs = []string{"none"}
	}
	return rule
}

// grant grants a user or a group these rules, and revokes all others.
func (f *front) grant(who string, rules ...rbacv1.PolicyRule) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	_, exists := f.rules[who]
	f.rules[who] = rules
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sets-of-" + who, ResourceVersion: f.next()}, Rules: rules}
	roles, bindings := f.clientset.RbacV1().ClusterRoles(), f.clientset.RbacV1().ClusterRoleBindings()
	if exists {
		_, err := roles.Update(f.t.Context(), role, metav1.UpdateOptions{})
		must(f.t, err)
		return
	}
	_, err := roles.Create(f.t.Context(), role, metav1.CreateOptions{})
	must(f.t, err)
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}
	if group, ok := groupOf(who); ok {
		subject.Kind, subject.Name = rbacv1.GroupKind, group
	}
	_, err = bindings.Create(f.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "sets-of-" + who, ResourceVersion: f.next()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	must(f.t, err)
}

// revoke revokes all rights of a user.
func (f *front) revoke(who string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rules, who)
	f.next()
	must(f.t, f.clientset.RbacV1().ClusterRoleBindings().Delete(f.t.Context(), "sets-of-"+who, metav1.DeleteOptions{}))
	f.next()
	must(f.t, f.clientset.RbacV1().ClusterRoles().Delete(f.t.Context(), "sets-of-"+who, metav1.DeleteOptions{}))
}

func (f *front) next() string { return strconv.FormatInt(f.version.Add(1), 10) }

func groupOf(who string) (string, bool) {
	const prefix = "group:"
	if len(who) > len(prefix) && who[:len(prefix)] == prefix {
		return who[len(prefix):], true
	}
	return "", false
}

// authorize applies the same rules.
func (f *front) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.GetVerb() != "get" || a.GetAPIGroup() != cluster.GroupName {
		return authorizer.DecisionNoOpinion, "", nil
	}
	asked := a.GetResource()
	if a.GetSubresource() != "" {
		asked += "/" + a.GetSubresource()
	}
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	subjects := []string{a.GetUser().GetName()}
	for _, g := range a.GetUser().GetGroups() {
		subjects = append(subjects, "group:"+g)
	}
	for _, s := range subjects {
		for _, rule := range f.rules[s] {
			named := rule.ResourceNames == nil || slices.Contains(rule.ResourceNames, a.GetName())
			if named && slices.Contains(rule.Verbs, "get") && slices.Contains(rule.Resources, asked) {
				return authorizer.DecisionAllow, "", nil
			}
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}
