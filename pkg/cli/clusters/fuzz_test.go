// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzParseLabels: parseLabels accepts what the API server accepts, and parsing the written form again gives the same result.
func FuzzParseLabels(f *testing.F) {
	for _, seed := range []string{"a=b", "a-", "a=", "x.io/a=b c-", "a=b a-", "=", "-", "a=b=c", "a--", "A/b/c=d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		changes, err := parseLabels(strings.Fields(line))
		if err != nil {
			return
		}
		var args []string
		for key, value := range changes {
			arg := key + "-"
			if value != nil {
				arg = key + "=" + *value
			}
			if len(validation.IsQualifiedName(key)) > 0 || value != nil && len(validation.IsValidLabelValue(*value)) > 0 {
				t.Errorf("%q is taken", arg)
			}
			args = append(args, arg)
		}
		if again, err := parseLabels(args); err != nil || !reflect.DeepEqual(again, changes) {
			t.Errorf("%q became %q: %v", line, args, err)
		}
	})
}

func TestParseLabels(t *testing.T) {
	changes, err := parseLabels([]string{"a=b", "example.com/c=", "d-", "e=f=g"})
	if err == nil {
		t.Errorf("a value with = in it: %v", changes)
	}
	changes, err = parseLabels([]string{"a=b", "example.com/c=", "d-", "g=h.1"})
	if err != nil || len(changes) != 4 || *changes["a"] != "b" || *changes["example.com/c"] != "" || changes["d"] != nil || *changes["g"] != "h.1" {
		t.Errorf("got %v, %v", changes, err)
	}
	for _, args := range [][]string{{"a"}, {"=b"}, {"-"}, {"a=b", "a-"}, {"a b=c"}, {"a=b c"}, {"A/B/c=d"}} {
		if changes, err := parseLabels(args); err == nil {
			t.Errorf("%q: %v", args, changes)
		}
	}
}
