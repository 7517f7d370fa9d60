// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// ClaimFunc returns the claim of an object, or "". Claims are paths: two objects with the same path exclude each other.
type ClaimFunc func(runtime.Object) string

// ConflictFunc returns the error that a client gets for a ClaimedError.
type ConflictFunc func(name string, err *ClaimedError) error

// claiming is a storage whose objects hold claims.
type claiming struct {
	storage.Interface
	claim    ClaimFunc
	conflict ConflictFunc
}

func (s *claiming) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	name := nameOf(obj)
	claim := s.claim(obj)
	ctx = withTransition(ctx, &transition{holder: name, acquire: claim, holds: s.holds(key, claim, obj)})
	return s.explain(name, s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s *claiming) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	t := &transition{}
	// The function runs once for each attempt, right before that attempt's transaction.
	update := func(input runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		before := s.claim(input)
		output, ttl, err := tryUpdate(input, res)
		if err == nil {
			after := s.claim(output)
			*t = transition{holder: nameOf(output), release: before, acquire: after, holds: s.holds(key, after, output)}
		}
		return output, ttl, err
	}
	err := s.Interface.GuaranteedUpdate(withTransition(ctx, t), key, destination, ignoreNotFound, preconditions, update, cachedExistingObject)
	return s.explain(t.holder, err)
}

func (s *claiming) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	t := &transition{}
	validate := func(ctx context.Context, obj runtime.Object) error {
		*t = transition{holder: nameOf(obj), release: s.claim(obj)}
		return validateDeletion(ctx, obj)
	}
	return s.Interface.Delete(withTransition(ctx, t), key, out, preconditions, validate, cachedExistingObject, opts)
}

// holds checks an object in the directory of key, of the same type as like, for a claim. An object that cannot be read keeps its claim.
func (s *claiming) holds(key, claim string, like runtime.Object) func(context.Context, string) (bool, int64) {
	return func(ctx context.Context, name string) (bool, int64) {
		object := reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
		if err := s.Get(ctx, sibling(key, name), storage.GetOptions{IgnoreNotFound: true}, object); err != nil {
			return true, 0
		}
		revision, err := s.Versioner().ObjectResourceVersion(object)
		return err != nil || revision != 0 && s.claim(object) == claim, int64(revision)
	}
}

func (s *claiming) explain(name string, err error) error {
	if claimed, ok := err.(*ClaimedError); ok {
		return s.conflict(name, claimed)
	}
	return err
}

func nameOf(obj runtime.Object) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetName()
}
