// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging reads lists of an API server in pages, with the List function of any client. A page has 500 objects, unless the options have a
// limit. A continue token that expires is an error: the pager must not request everything at once instead.
package paging

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const pageSize = 500

func newPager[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) *pager.ListPager {
	return &pager.ListPager{PageSize: pageSize, PageFn: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}}
}

// List returns a list with the objects of all pages. After an error, the list is empty and not nil.
func List[T any, L interface {
	*T
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions) (L, error) {
	all := L(new(T))
	read, _, err := newPager(list).List(ctx, options)
	if err != nil {
		return all, err
	}
	items, err := meta.ExtractList(read)
	if err != nil {
		return all, err
	}
	accessor, err := meta.ListAccessor(read)
	if err != nil {
		return all, err
	}
	all.SetResourceVersion(accessor.GetResourceVersion())
	return all, meta.SetList(all, items)
}

// EachItem calls do for each object of a list, until do returns an error. It requests the next page while do is called for the objects of a page, so
// that no more than two pages are in memory.
func EachItem[T any, L runtime.Object](
	ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions, do func(item *T) error,
) error {
	return newPager(list).EachListItem(ctx, options, func(item runtime.Object) error { return do(any(item).(*T)) })
}
