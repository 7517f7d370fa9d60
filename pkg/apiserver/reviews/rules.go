// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// kinds is the number of kinds of RBAC rules.
const kinds = 4

// RuleHistory knows how long the front's RBAC rules for a user have been unchanged.
type RuleHistory struct {
	// memory is the time for which a change must be remembered.
	memory  time.Duration
	holders *rbac.Holders

	mu sync.RWMutex
	// recent and older have the time of the last change for each affected holder. Times that are older than the memory are in neither. The cost of a
	// change depends on its holders only, and expired entries are dropped without a search.
	recent, older map[rbac.Holder]time.Time
	// recentSince is when recent was empty.
	recentSince time.Time
	// listed counts the kinds that have been listed, and complete is when the last of them was.
	listed   int
	complete time.Time
}

// NewRules returns a RuleHistory that remembers changes for some time. It is empty until Run is called.
func NewRules(memory time.Duration) *RuleHistory {
	return &RuleHistory{
		memory: memory, holders: rbac.NewHolders(),
		recent: map[rbac.Holder]time.Time{}, older: map[rbac.Holder]time.Time{}, recentSince: time.Now(),
	}
}

// Run watches the rules until the context ends.
func (r *RuleHistory) Run(ctx context.Context, front rbacclient.RbacV1Interface) {
	rbac.Follow(ctx, front, front.ClusterRoles(), &rbacv1.ClusterRole{}, newStore[*rbacv1.ClusterRole](r, nil))
	rbac.Follow(ctx, front, front.Roles(""), &rbacv1.Role{}, newStore[*rbacv1.Role](r, nil))
	rbac.Follow(ctx, front, front.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{},
		newStore(r, r.holders.SetClusterRoleBinding))
	rbac.Follow(ctx, front, front.RoleBindings(""), &rbacv1.RoleBinding{}, newStore(r, r.holders.SetRoleBinding))
	<-ctx.Done()
}

// Ready returns an error until all rules are known. Until then no decision is cached.
func (r *RuleHistory) Ready() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.listed < kinds {
		return errors.New("the RBAC rules of the hub have not been listed yet: hub-apiserver needs to list and watch clusterroles, " +
			"clusterrolebindings, roles and rolebindings of rbac.authorization.k8s.io")
	}
	return nil
}

// lastChange returns the last time when the rules for a request may have changed, or the zero time if that was before the memory begins. Until the
// rules are known, it returns the current time.
func (r *RuleHistory) lastChange(a authorizer.Attributes) time.Time {
	who := a.GetUser()
	if who == nil {
		return time.Now()
	}
	holders := r.holders.Of(who)
	if namespace := a.GetNamespace(); namespace != "" {
		holders = append(holders, r.holders.Namespace(namespace))
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.listed < kinds {
		return time.Now()
	}
	last := r.complete
	for _, h := range holders {
		// If a holder is in recent, its time in older is earlier, if there is one.
		at, ok := r.recent[h]
		if !ok {
			at = r.older[h]
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// touch records a change. The lock must be held.
func (r *RuleHistory) touch(concerned []rbac.Holder) {
	if r.listed < kinds {
		return
	}
	now := time.Now()
	if now.Sub(r.recentSince) > r.memory {
		r.recent, r.older, r.recentSince = map[rbac.Holder]time.Time{}, r.recent, now
	}
	for _, h := range concerned {
		r.recent[h] = now
	}
}

// store is the store of a reflector for one kind of rules.
type store[T metav1.Object] struct {
	rules *RuleHistory
	// set updates the holders of a binding. It is nil for roles.
	set    func(T) []rbac.Holder
	listed bool
	// versions are the resource versions of all existing rules.
	versions map[cache.ObjectName]string
}

var _ cache.ReflectorStore = &store[*rbacv1.Role]{}

func newStore[T metav1.Object](r *RuleHistory, set func(T) []rbac.Holder) *store[T] {
	return &store[T]{rules: r, set: set, versions: map[cache.ObjectName]string{}}
}

// put stores a rule that may have changed. The lock must be held.
func (s *store[T]) put(rule T) {
	name := cache.MetaObjectToName(rule)
	if version, known := s.versions[name]; known && version == rule.GetResourceVersion() {
		return
	}
	s.versions[name] = rule.GetResourceVersion()
	if s.set != nil {
		s.rules.touch(s.set(rule))
		return
	}
	s.rules.touch(s.rules.holders.OfRole(name.Namespace, name.Name))
}

// remove deletes a rule. The lock must be held.
func (s *store[T]) remove(name cache.ObjectName) {
	delete(s.versions, name)
	if s.set != nil {
		s.rules.touch(s.rules.holders.DeleteBinding(name.Namespace, name.Name))
		return
	}
	s.rules.touch(s.rules.holders.OfRole(name.Namespace, name.Name))
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(obj any) error {
	return s.change(obj, s.put)
}

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(obj any) error {
	return s.change(obj, func(rule T) { s.remove(cache.MetaObjectToName(rule)) })
}

func (s *store[T]) change(obj any, take func(T)) error {
	rule, ok := obj.(T)
	if !ok {
		return fmt.Errorf("unexpected %T among the RBAC rules", obj)
	}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	take(rule)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(objs []any, _ string) error {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	there := make(map[cache.ObjectName]struct{}, len(objs))
	for _, obj := range objs {
		rule, ok := obj.(T)
		if !ok {
			return fmt.Errorf("unexpected %T among the RBAC rules", obj)
		}
		there[cache.MetaObjectToName(rule)] = struct{}{}
		s.put(rule)
	}
	for name := range s.versions {
		if _, ok := there[name]; !ok {
			s.remove(name)
		}
	}
	if !s.listed {
		s.listed = true
		s.rules.listed++
		s.rules.complete = time.Now()
	}
	return nil
}

// Resync implements cache.ReflectorStore. It has no meaning here.
func (s *store[T]) Resync() error { return nil }
