// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import "testing"

// TestRoles_UnusedAreDropped verifies that unused lists are dropped.
func TestRoles_UnusedAreDropped(t *testing.T) {
	roles := Roles{lists: map[roleList]*listedRoles{{"gone", "Role"}: {}}}
	roles.of(roleList{"blue", "ClusterRole"})
	if len(roles.lists) != 1 {
		t.Errorf("%d lists remain", len(roles.lists))
	}
}
