// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterlabel

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
)

// manyLabels returns as many changes as one request may make.
func manyLabels() (pairs []string) {
	for i := range maxChanges {
		pairs = append(pairs, fmt.Sprintf("%s-%02d", regionKey, i), "x")
	}
	return pairs
}

// TestValidate_ManyDeniedChangesCauseFewReviews verifies that a request without any permission causes only a few checks: it is rejected after a few
// missing permissions.
func TestValidate_ManyDeniedChangesCauseFewReviews(t *testing.T) {
	a := &at.Authorizer{}
	_, err := at.Validate(t, pluginFor(a), at.Request{Object: at.Cluster("c1", manyLabels()...)}.Attributes())
	rules := at.MissingRules(t, err)
	if len(rules) != 4 {
		t.Errorf("%v\nnames %d rules, want 4", err, len(rules))
	}
	if len(a.Asked) > 12 {
		t.Errorf("asked %d times: %q", len(a.Asked), a.Names())
	}
	if want := "60 more changes of this request were not checked"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v\ndoes not say %q", err, want)
	}
	// A change that was not checked is not allowed.
	a = &at.Authorizer{Grants: rules}
	if _, err := at.Validate(t, pluginFor(a), at.Request{Object: at.Cluster("c1", manyLabels()...)}.Attributes()); !apierrors.IsForbidden(err) {
		t.Errorf("with the first rules: %v, want a 403", err)
	}
}

// TestValidate_DeniesOneOfManyChanges verifies that the last of many changes is checked like the first.
func TestValidate_DeniesOneOfManyChanges(t *testing.T) {
	pairs := manyLabels()
	for refused := 0; refused < len(pairs); refused += 2 {
		a := &at.Authorizer{}
		for i := 0; i < len(pairs); i += 2 {
			if i != refused {
				a.Grants = append(a.Grants, at.Label(pairs[i]+":x"))
			}
		}
		_, err := at.Validate(t, pluginFor(a), at.Request{Object: at.Cluster("c1", pairs...)}.Attributes())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), pairs[refused]+":x") || strings.Contains(err.Error(), "not checked") {
			t.Errorf("without %s: %v", pairs[refused], err)
		}
	}
}

// TestValidate_FailingAuthorizerIsCalledOnce verifies that the plugin waits only once for a front that does not respond.
func TestValidate_FailingAuthorizerIsCalledOnce(t *testing.T) {
	a := &at.Authorizer{Err: errors.New("connection refused")}
	_, err := at.Validate(t, pluginFor(a), at.Request{Object: at.Cluster("c1", manyLabels()...)}.Attributes())
	if !apierrors.IsForbidden(err) || len(a.Asked) != 1 {
		t.Errorf("%v after asking %d times, want a 403 after one", err, len(a.Asked))
	}
}
