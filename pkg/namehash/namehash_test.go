// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namehash

import "testing"

// These are the names that openMCP's scheduler and providers give. Objects on hubs in use have them.
func TestNameHash_MatchesOpenMCP(t *testing.T) {
	for want, parts := range map[string][]string{
		"epgccknc": {"example"},
		"fphxsdub": {"default", "example"},
		"qilq5nsb": {"foo", "exclusive"},
		"urf5rng2": {"foo", "shared"},
		"vsa6ssty": {"foo", "shared3"},
		"amxoeght": {"test", "gardener", "foo", "my-access"},
		"bvxjofm3": {"unit-test", "kind", "default", "test"},
	} {
		if got := NameHash(parts...); got != want {
			t.Errorf("%q: %s, want %s", parts, got, want)
		}
	}
}
