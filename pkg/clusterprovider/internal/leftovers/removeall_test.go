// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"strings"
	"testing"
)

// TestWithdraw_RevokesAllFoundInCluster: the next Cluster that gets the cluster must not have users in it that the hub does
// not know.
func TestWithdraw_RevokesAllFoundInCluster(t *testing.T) {
	s := newSwept(t)
	known, lost := request("known", "1"), request("lost", "2")
	s.grant(known, s.Identity, true)
	s.grant(lost, s.Identity, false)
	before := s.objects()
	another := s.anotherHub()
	if err := s.RemoveAll(t.Context(), s.in, another); err != nil {
		t.Fatal(err)
	}
	s.want(before) // it belongs to another Cluster
	if err := s.RemoveAll(t.Context(), s.in, s.cluster); err != nil {
		t.Fatal(err)
	}
	for object := range s.objects() {
		// Roles with names of the requests' own, without a binding, cannot be distinguished from others'.
		if !strings.HasPrefix(object, "ClusterRole ") || !strings.HasSuffix(object, "-named") {
			t.Errorf("%s remains", object)
		}
	}
	if s.asked > 0 {
		t.Errorf("the hub got %d requests", s.asked)
	}
}
