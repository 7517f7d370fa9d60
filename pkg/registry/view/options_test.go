// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
)

// TestSelectors_TermsAreLimited: even for a user who may see nothing, selectors are compared with every member that changes.
func TestSelectors_TermsAreLimited(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	ctx := as(t.Context(), someone("eve"))
	terms := func(form string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(form, i))
		}
		return strings.Join(all, ",")
	}
	for what, c := range map[string]struct {
		labels, fields string
		refused        bool
	}{
		"none":                {},
		"keys":                {labels: terms("!k%d", filtered.MaxTerms)},
		"too many keys":       {labels: terms("!k%d", filtered.MaxTerms+1), refused: true},
		"values":              {labels: "k notin (" + terms("v%d", filtered.MaxTerms-1) + ")"},
		"too many values":     {labels: "k notin (" + terms("v%d", filtered.MaxTerms) + ")", refused: true},
		"fields":              {fields: terms("spec.cluster!=c%d", filtered.MaxTerms)},
		"too many fields":     {fields: terms("spec.cluster!=c%d", filtered.MaxTerms+1), refused: true},
		"too many of both":    {labels: terms("!k%d", filtered.MaxTerms), fields: "spec.cluster=c1", refused: true},
		"what matches no one": {labels: "k in (v)"},
	} {
		options := &internalversion.ListOptions{}
		var err error
		options.LabelSelector, err = labels.Parse(c.labels)
		if err != nil {
			t.Fatal(err)
		}
		options.FieldSelector, err = fields.ParseSelector(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		_, listErr := r.List(ctx, options)
		w, watchErr := r.Watch(ctx, options)
		if watchErr == nil {
			w.Stop()
		}
		for verb, err := range map[string]error{"list": listErr, "watch": watchErr} {
			if apierrors.IsBadRequest(err) != c.refused || err != nil && !c.refused {
				t.Errorf("%s: %s: got %v", what, verb, err)
			}
		}
	}
}
