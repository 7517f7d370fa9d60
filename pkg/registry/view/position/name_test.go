// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"strings"
	"testing"
)

// FuzzSplitName: an accepted name belongs to one member, and is a part of one key.
func FuzzSplitName(f *testing.F) {
	for _, name := range []string{"c1.set", "c1.set.with.dots", "c1", ".set", "c1.", "c1.a/b", "../c1.set", "c1.SET", "c1..set"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		cluster, set, ok := SplitName(name)
		if !ok {
			return
		}
		if cluster+"."+set != name || strings.ContainsAny(cluster, "./") || strings.Contains(set, "/") || cluster == "" || set == "" {
			t.Errorf("%q is taken for the cluster %q in the set %q", name, cluster, set)
		}
	})
}
