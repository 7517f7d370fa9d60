// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namehash

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzNameHash: a hash can be a part of any name, and stays the same.
func FuzzNameHash(f *testing.F) {
	f.Add("teams", "blue")
	f.Add("", "/")
	f.Add("\x00", "ü")
	form := regexp.MustCompile(`^[a-z2-7]{8}$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		hash := NameHash(a, b)
		if !form.MatchString(hash) || hash != NameHash(a, b) {
			t.Errorf("%q, %q: %q", a, b, hash)
		}
		// Names have no slash, by which others are told apart.
		if !strings.Contains(a+b, "/") && b != "" && NameHash(a+b) == hash {
			t.Errorf("%q, %q is named as %q", a, b, a+b)
		}
	})
}
