// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
