// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestBounds_RejectLargerObjects(t *testing.T) {
	path := field.NewPath("a")
	for _, c := range []struct {
		now, before int
		refused     bool
	}{
		{0, 0, false}, {3, 0, false}, {4, 0, true}, {4, 3, true}, {4, 4, false}, {4, 9, false}, {9, 8, true},
	} {
		values := func(n int) []string { return []string{"", strings.Repeat("x", n)} }
		for what, errs := range map[string]field.ErrorList{
			"count":  Count(path, c.now, c.before, 3),
			"length": Length(path, strings.Repeat("x", c.now), c.before, 3),
			"each":   Each(path, "b", values(c.now), values(c.before), 3, func(s *string) string { return *s }),
		} {
			if (len(errs) > 0) != c.refused || len(errs) > 1 {
				t.Errorf("%s of %d after %d: %v", what, c.now, c.before, errs)
			}
			for _, err := range errs {
				if !strings.Contains(err.Error(), "3") || !strings.HasPrefix(err.Field, "a") {
					t.Errorf("%s: %v does not say the bound, or where", what, err)
				}
			}
		}
	}
	if errs := Each(path, "b", []string{"", "xxxx"}, nil, 3, func(s *string) string { return *s }); len(errs) != 1 || errs[0].Field != "a[1].b" {
		t.Errorf("got %v", errs)
	}
}
