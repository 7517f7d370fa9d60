// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored reads stored objects for registries whose responses are computed.
package stored

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
)

// List lists the current objects in a namespace, or in all of them. The options may be nil.
func List[T runtime.Object](ctx context.Context, of rest.Lister, namespace string, options *internalversion.ListOptions) (T, error) {
	var typed T
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	object, err := of.List(request.WithNamespace(ctx, namespace), options)
	if err != nil {
		return typed, err
	}
	typed, ok := object.(T)
	if !ok {
		return typed, apierrors.NewInternalError(fmt.Errorf("the list is a %T", object))
	}
	return typed, nil
}

// Sets returns the existing sets, with an error for each set whose members are unknown.
func Sets(ctx context.Context, sets rest.Lister) (map[string]error, error) {
	all, err := List[*cluster.ManagedClusterSetList](ctx, sets, "", nil)
	if err != nil {
		return nil, err
	}
	exist := make(map[string]error, len(all.Items))
	for i := range all.Items {
		_, err := selector.For(&all.Items[i])
		if err != nil {
			err = fmt.Errorf("the members of the ManagedClusterSet %s are not known: %w", all.Items[i].Name, err)
		}
		exist[all.Items[i].Name] = err
	}
	return exist, nil
}

// BoundSets returns the sorted names of the sets that a namespace has bound, whether they exist or not.
func BoundSets(ctx context.Context, bindings rest.Lister, namespace string) (names []string, err error) {
	all, err := List[*cluster.ManagedClusterSetBindingList](ctx, bindings, namespace, nil)
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if b := &all.Items[i]; b.DeletionTimestamp == nil && b.Spec.ClusterSet == b.Name {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
