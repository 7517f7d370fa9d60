// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
)

var scheme = boundstest.Scheme(install.Install)

// wantErrors compares errors with the expected ones, each written "<type> <path>". The type is that of package field.
func wantErrors(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	got := []string{}
	for _, err := range errs {
		got = append(got, string(err.Type)+" "+err.Field)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%v", got, want, errs.ToAggregate())
	}
}

const (
	invalid     = "FieldValueInvalid "
	required    = "FieldValueRequired "
	forbidden   = "FieldValueForbidden "
	duplicate   = "FieldValueDuplicate "
	unsupported = "FieldValueNotSupported "
	tooLong     = "FieldValueTooLong "
	tooShort    = "FieldValueTooShort "
)

// stored is the metadata of an object that exists.
func stored(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, ResourceVersion: "1", UID: "u", Generation: 1}
}

func condition(conditionType string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: "True", Reason: "Because", LastTransitionTime: metav1.Unix(1, 0)}
}

// conditionCases are changes that make one valid condition invalid, and the errors below its index.
var conditionCases = map[string]struct {
	change func(*metav1.Condition)
	want   []string
}{
	"valid":             {func(*metav1.Condition) {}, nil},
	"no type":           {func(c *metav1.Condition) { c.Type = "" }, []string{required, ".type"}},
	"a bad type":        {func(c *metav1.Condition) { c.Type = "a b" }, []string{invalid, ".type"}},
	"no status":         {func(c *metav1.Condition) { c.Status = "" }, []string{required, ".status"}},
	"an unknown status": {func(c *metav1.Condition) { c.Status = "yes" }, []string{unsupported, ".status"}},
	"no reason":         {func(c *metav1.Condition) { c.Reason = "" }, []string{required, ".reason"}},
	"a bad reason":      {func(c *metav1.Condition) { c.Reason = "no spaces" }, []string{invalid, ".reason"}},
	"no time": {func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} },
		[]string{required, ".lastTransitionTime"}},
	"a negative observed": {func(c *metav1.Condition) { c.ObservedGeneration = -1 },
		[]string{invalid, ".observedGeneration"}},
}

// testConditions holds the conditions of a kind to their rules; validate gets them put where they belong, at path.
func testConditions(t *testing.T, path string, validate func([]metav1.Condition) field.ErrorList) {
	t.Helper()
	for name, c := range conditionCases {
		t.Run("condition with "+name, func(t *testing.T) {
			bad := condition("B")
			c.change(&bad)
			var want []string
			if len(c.want) > 0 {
				want = []string{c.want[0] + path + "[1]" + c.want[1]}
			}
			wantErrors(t, validate([]metav1.Condition{condition("A"), bad}), want...)
		})
	}
	t.Run("condition twice", func(t *testing.T) {
		wantErrors(t, validate([]metav1.Condition{condition("A"), condition("A")}), duplicate+path+"[1]")
	})
	t.Run("no conditions", func(t *testing.T) { wantErrors(t, validate(nil)) })
}
