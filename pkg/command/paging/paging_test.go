// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pages is a server whose first page has the continue token "b". The token is expired if err is set.
func pages(t *testing.T, limit int64, err error) func(context.Context, metav1.ListOptions) (*corev1.SecretList, error) {
	return func(_ context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
		if options.Limit != limit || options.LabelSelector != "a=b" {
			t.Errorf("requested with %+v", options)
		}
		page := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		if options.Continue == "b" {
			page.Items = []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "z"}}}
			return page, err
		}
		page.Continue, page.Items = "b", []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, {ObjectMeta: metav1.ObjectMeta{Name: "y"}}}
		return page, nil
	}
}

var errExpired = apierrors.NewResourceExpired("too old")

func TestList_ReadsAllPages(t *testing.T) {
	all, err := List(t.Context(), pages(t, pageSize, nil), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil || len(all.Items) != 3 || all.Items[2].Name != "z" || all.ResourceVersion != "7" || all.Continue != "" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A printed list has no null.
func TestList_EmptyIsNotNull(t *testing.T) {
	none := func(context.Context, metav1.ListOptions) (*corev1.SecretList, error) {
		return &corev1.SecretList{}, nil
	}
	if all, err := List(t.Context(), none, metav1.ListOptions{}); err != nil || all.Items == nil || len(all.Items) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestExpiredToken_IsReturned(t *testing.T) {
	options := metav1.ListOptions{LabelSelector: "a=b", Limit: 2}
	all, err := List(t.Context(), pages(t, 2, errExpired), options)
	if !errors.Is(err, errExpired) || all == nil || len(all.Items) != 0 {
		t.Errorf("List: %+v, %v", all, err)
	}
	if err := EachItem(t.Context(), pages(t, 2, errExpired), options, func(*corev1.Secret) error { return nil }); !errors.Is(err, errExpired) {
		t.Errorf("EachItem: %v", err)
	}
}

func TestEachItem_StopsAtError(t *testing.T) {
	options := metav1.ListOptions{LabelSelector: "a=b", Limit: 2}
	for _, last := range []string{"y", "z", "none"} {
		var names []string
		enough := errors.New("enough")
		err := EachItem(t.Context(), pages(t, 2, nil), options, func(s *corev1.Secret) error {
			names = append(names, s.Name)
			if s.Name == last {
				return enough
			}
			return nil
		})
		want := map[string][]string{"y": {"x", "y"}, "z": {"x", "y", "z"}, "none": {"x", "y", "z"}}[last]
		if !slices.Equal(names, want) || (err == nil) != (last == "none") || err != nil && err != enough {
			t.Errorf("until %s: %v, %v", last, names, err)
		}
	}
}
