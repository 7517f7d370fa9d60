// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package filtered

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// listOptions converts the options of a request to those of the storage.
func (r *REST) listOptions(options *internalversion.ListOptions) (storage.ListOptions, error) {
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	if err := checkTerms(options); err != nil {
		return storage.ListOptions{}, err
	}
	predicate := storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.Everything(), GetAttrs: r.Visible.Resource.Attributes,
		IndexFields: r.indexed,
		Limit:       options.Limit, Continue: options.Continue, AllowWatchBookmarks: options.AllowWatchBookmarks,
	}
	if options.LabelSelector != nil {
		predicate.Label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		predicate.Field = options.FieldSelector
	}
	return storage.ListOptions{
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		SendInitialEvents:    options.SendInitialEvents,
		Recursive:            true,
		Predicate:            predicate,
	}, nil
}

// watchOptions also rejects invalid versions. A list does that itself.
func (r *REST) watchOptions(options *internalversion.ListOptions) (storage.ListOptions, error) {
	opts, err := r.listOptions(options)
	if err != nil {
		return opts, err
	}
	return opts, generic.CheckVersion("resourceVersion", opts.ResourceVersion)
}

// MaxTerms is the maximum number of keys and values in the selectors of a request. The selectors of a watch are compared with every changed object,
// before it is known whether the user may see it, and the URL of a request has room for a hundred thousand terms.
const MaxTerms = 256

func checkTerms(options *internalversion.ListOptions) error {
	terms := 0
	if options.LabelSelector != nil {
		requirements, _ := options.LabelSelector.Requirements()
		terms += len(requirements)
		for i := range requirements {
			terms += len(requirements[i].ValuesUnsorted())
		}
	}
	if options.FieldSelector != nil {
		terms += len(options.FieldSelector.Requirements())
	}
	if terms > MaxTerms {
		return apierrors.NewBadRequest(fmt.Sprintf("labelSelector and fieldSelector have %d keys and values, and may have %d: select "+
			"fewer, or read all and choose from them", terms, MaxTerms))
	}
	return nil
}
