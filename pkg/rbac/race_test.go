// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// One writer moves many users from one generation of names to the next; readers use the current snapshot. Each snapshot must be of one generation
// only, and return the same twice. Run with -race.
func TestSnapshot_ConcurrentReads(t *testing.T) {
	const users, generations, readers = 200, 200, 4

	index := NewIndex(getSets)
	for u := range users {
		name := fmt.Sprint("user-", u)
		index.SetClusterRoleBinding(bind(name, "shared", userSubject(name), groupSubject("crowd")))
	}
	var current atomic.Pointer[Snapshot]
	publish := func(generation int) {
		first, second := fmt.Sprintf("%04d-a", generation), fmt.Sprintf("%04d-b", generation)
		index.SetClusterRole(role("shared", rule(first, second)))
		// One binding is deleted and created again, so that the tree of holdings is written as well.
		name := fmt.Sprint("user-", generation%users)
		index.DeleteClusterRoleBinding(name)
		index.SetClusterRoleBinding(bind(name, "shared", userSubject(name), groupSubject("crowd")))
		current.Store(index.Snapshot())
	}
	publish(0)

	var done atomic.Bool
	var group sync.WaitGroup
	for reader := range readers {
		group.Go(func() {
			for n := reader; !done.Load(); n++ {
				snapshot := current.Load()
				want := snapshot.NamesFor(someone(fmt.Sprint("user-", n%users)))
				got := snapshot.NamesFor(someone(fmt.Sprint("user-", (n+1)%users), "crowd"))
				names := want.Sorted()
				if !got.Equal(want) || len(names) != 2 || names[0][:4] != names[1][:4] {
					t.Errorf("one snapshot says %v and %v", show(want), show(got))
					return
				}
			}
		})
	}
	for generation := range generations {
		publish(generation + 1)
	}
	done.Store(true)
	group.Wait()
}
