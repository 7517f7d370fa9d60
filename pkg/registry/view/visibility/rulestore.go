// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// progress is the progress of a replica with one kind of rules, in resource versions of the front.
type progress struct {
	// known is the version up to which nothing can have been missed, and changed the latest observed change.
	known, changed uint64
	// listed reports whether a list has been read.
	listed bool
}

// ruleStore feeds the indexes with one kind of rules, as the store of a reflector. Unlike an informer, it gets the version of a list, together with
// the deletions that the list implies.
type ruleStore[T metav1.Object] struct {
	rules    *Rules
	progress *progress
	set      func(*rbac.Index, T) bool
	remove   func(*rbac.Index, string) bool
	// names has the names of all existing rules.
	names map[string]struct{}
	// kind is the kind in metrics.
	kind string
}

func errUnexpected(obj any) error { return fmt.Errorf("unexpected %T among the RBAC rules", obj) }

var (
	_ cache.ReflectorStore         = &ruleStore[*rbacv1.ClusterRole]{}
	_ cache.ReflectorBookmarkStore = &ruleStore[*rbacv1.ClusterRole]{}
)

// followRules starts a reflector of each kind of rules, until the context ends.
func (r *Rules) followRules(ctx context.Context) {
	roles := &ruleStore[*rbacv1.ClusterRole]{
		rules: r, kind: "ClusterRole", progress: &r.roles, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRole, remove: (*rbac.Index).DeleteClusterRole,
	}
	rbac.Follow(ctx, r.front, r.front.ClusterRoles(), &rbacv1.ClusterRole{}, roles)
	bindings := &ruleStore[*rbacv1.ClusterRoleBinding]{
		rules: r, kind: "ClusterRoleBinding", progress: &r.bindings, names: map[string]struct{}{},
		set: (*rbac.Index).SetClusterRoleBinding, remove: (*rbac.Index).DeleteClusterRoleBinding,
	}
	rbac.Follow(ctx, r.front, r.front.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{}, bindings)
}

// Add implements cache.ReflectorStore.
func (s *ruleStore[T]) Add(obj any) error {
	rule, ok := obj.(T)
	if !ok {
		return errUnexpected(obj)
	}
	return s.change(rule.GetResourceVersion(), func(index *rbac.Index) bool {
		s.names[rule.GetName()] = struct{}{}
		return s.set(index, rule)
	})
}

// Update implements cache.ReflectorStore.
func (s *ruleStore[T]) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s *ruleStore[T]) Delete(obj any) error {
	rule, ok := obj.(T)
	if !ok {
		return errUnexpected(obj)
	}
	return s.change(rule.GetResourceVersion(), func(index *rbac.Index) bool {
		delete(s.names, rule.GetName())
		return s.remove(index, rule.GetName())
	})
}

// change applies one change of a version.
func (s *ruleStore[T]) change(version string, make func(*rbac.Index) bool) error {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	heard.WithLabelValues(s.kind).SetToCurrentTime()
	s.progress.changed = max(s.progress.changed, v)
	s.progress.known = max(s.progress.known, v)
	if s.rules.change(make) {
		s.rules.wake()
	}
	return nil
}

// Replace implements cache.ReflectorStore. Rules that are not in the list were deleted at some version up to that of the list.
func (s *ruleStore[T]) Replace(objs []any, version string) error {
	known, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	heard.WithLabelValues(s.kind).SetToCurrentTime()
	before := s.names
	s.names = make(map[string]struct{}, len(objs))
	changed := !s.progress.listed
	for _, obj := range objs {
		rule, ok := obj.(T)
		if !ok {
			return errUnexpected(obj)
		}
		if v, err := strconv.ParseUint(rule.GetResourceVersion(), 10, 64); err == nil {
			s.progress.changed = max(s.progress.changed, v)
		}
		s.names[rule.GetName()] = struct{}{}
		changed = s.rules.change(func(index *rbac.Index) bool { return s.set(index, rule) }) || changed
	}
	for name := range before {
		if _, ok := s.names[name]; !ok {
			s.progress.changed = max(s.progress.changed, known)
			changed = s.rules.change(func(index *rbac.Index) bool { return s.remove(index, name) }) || changed
		}
	}
	s.progress.known = max(s.progress.known, known)
	s.progress.listed = true
	if changed {
		s.rules.wake()
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *ruleStore[T]) Bookmark(version string) error {
	known, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	heard.WithLabelValues(s.kind).SetToCurrentTime()
	s.progress.known = max(s.progress.known, known)
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *ruleStore[T]) Resync() error { return nil }
