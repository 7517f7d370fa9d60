// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// counted counts the evaluations of a set's selector.
type counted struct {
	labels.Selector
	asked *int
}

func (c counted) Matches(l labels.Labels) bool {
	*c.asked++
	return c.Selector.Matches(l)
}

// fleet returns an index with n sets of perSet clusters each; the returned number counts the evaluations of selectors from here on.
func fleet(n, perSet int, selector func(i int) cluster.ManagedClusterSelector) (*Index, *int) {
	x, asked := New(), new(int)
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		x.SetSet(newSet(name, selector(i)))
		for j := range perSet {
			x.SetCluster(newCluster(fmt.Sprintf("c%d-%d", i, j), "all", "yes", "k", fmt.Sprint(i),
				fmt.Sprint("only-", i), "x"))
		}
	}
	for _, s := range x.sets {
		s.selector = counted{s.selector, asked}
	}
	return x, asked
}

// A change of a cluster evaluates the sets that it can affect, however many others there are; a change of a set evaluates its own clusters, however
// large the fleet is.
func TestCost_FollowsAffectedSets(t *testing.T) {
	for _, sets := range []int{10, 1000} {
		for _, kind := range []struct {
			name     string
			selector func(i int) cluster.ManagedClusterSelector
		}{
			{"equality", func(i int) cluster.ManagedClusterSelector { return exclusive("k", fmt.Sprint(i)) }},
			{"existence", func(i int) cluster.ManagedClusterSelector {
				return requiring(fmt.Sprint("only-", i),
					"Exists")
			}},
		} {
			t.Run(fmt.Sprintf("%d sets by %s", sets, kind.name), func(t *testing.T) {
				const perSet = 5
				x, asked := fleet(sets, perSet, kind.selector)
				expectAsked := func(what string, want int) {
					t.Helper()
					if *asked > want {
						t.Errorf("%s asked %d selectors, want %d at the most", what, *asked, want)
					}
					*asked = 0
				}
				x.SetCluster(newCluster("c1-1", "all", "yes", "k", "1", "only-1", "y"))
				expectAsked("a change within a set", 1)
				x.SetCluster(newCluster("c1-1", "all", "yes", "k", "2", "only-2", "x"))
				expectAsked("a move to another set", 1)
				x.SetCluster(newCluster("c1-1", "all", "yes"))
				expectAsked("leaving all sets", 0)
				x.DeleteCluster("c1-1")
				expectAsked("a deletion", 0)
				x.DeleteSet("s2")
				expectAsked("the deletion of a set", 0)

				s := newSet("s3", kind.selector(4))
				x.SetSet(s)
				sel := x.sets["s3"]
				sel.selector = counted{sel.selector, asked}
				if got := x.clustersOf(sel); len(got) != perSet {
					t.Errorf("the set has %d clusters, want %d", len(got), perSet)
				}
				expectAsked("a set that selects others", perSet)
			})
		}
	}
}

// BenchmarkSetCluster also reports how many selectors one change of a cluster evaluates.
func BenchmarkSetCluster(b *testing.B) {
	for _, sets := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("sets=%d", sets), func(b *testing.B) {
			x, asked := fleet(sets, 10, func(i int) cluster.ManagedClusterSelector {
				return exclusive("k",
					fmt.Sprint(i))
			})
			here, there := newCluster("c1-1", "k", "1"), newCluster("c1-1", "k", "2")
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				x.SetCluster(here)
				here, there = there, here
			}
			b.ReportMetric(float64(*asked)/float64(b.N), "selectors/op")
		})
	}
}
