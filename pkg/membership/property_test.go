// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// model has the members that follow from the changes, and the objects.
type model struct {
	clusters map[string]*cluster.ManagedCluster
	sets     map[string]*cluster.ManagedClusterSet
	members  map[string]*view.ClusterSetMember
}

// apply checks that each change fits the previous ones, and that they are in order.
func (m *model) apply(changes []Change) error {
	if !slices.IsSortedFunc(changes, func(a, b Change) int {
		return strings.Compare(a.Member.Spec.ClusterSet+"/"+a.Member.Spec.Cluster,
			b.Member.Spec.ClusterSet+"/"+b.Member.Spec.Cluster)
	}) {
		return fmt.Errorf("not in order: %v", texts(changes))
	}
	for _, c := range changes {
		before := m.members[c.Member.Name]
		if (before == nil) != (c.Type == watch.Added) {
			return fmt.Errorf("%s %s, but it was there: %v", c.Type, c.Member.Name, before != nil)
		}
		switch {
		case c.Type == watch.Deleted:
			delete(m.members, c.Member.Name)
		case before != nil && equality.Semantic.DeepEqual(before, c.Member):
			return fmt.Errorf("MODIFIED %s, but it is as before: %+v", c.Member.Name, c.Member)
		default:
			m.members[c.Member.Name] = c.Member
		}
	}
	return nil
}

// naive computes the members of all sets from scratch.
func (m *model) naive() []string {
	var names []string
	for _, s := range m.sets {
		sel, err := selector.For(s)
		if err != nil {
			continue
		}
		for _, c := range m.clusters {
			if sel.Matches(labels.Set(c.Labels)) {
				names = append(names, Name(c.Name, s.Name))
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestIndex_MatchesRecomputation(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			x := New()
			m := &model{map[string]*cluster.ManagedCluster{}, map[string]*cluster.ManagedClusterSet{},
				map[string]*view.ClusterSetMember{}}
			for step := range 300 {
				what, changes := randomChange(random, x, m)
				if err := m.apply(changes); err != nil {
					t.Fatalf("step %d, %s: %v", step, what, err)
				}
				if got, want := namesOf(x), m.naive(); !slices.Equal(got, want) {
					t.Fatalf("step %d, %s:\ngot  %v\nwant %v", step, what, got, want)
				}
				count := 0
				x.Members(func(member *view.ClusterSetMember) {
					count++
					if known := m.members[member.Name]; !equality.Semantic.DeepEqual(known, member) {
						t.Fatalf("step %d, %s: the changes told\n%+v\nbut it is\n%+v", step, what, known, member)
					}
				})
				if count != len(m.members) {
					t.Fatalf("step %d, %s: the changes told of %d members, there are %d", step, what, len(m.members),
						count)
				}
			}
			for name := range m.clusters {
				x.DeleteCluster(name)
			}
			for name := range m.sets {
				x.DeleteSet(name)
			}
			expectEmpty(t, x)
		})
	}
}

func randomChange(random *rand.Rand, x *Index, m *model) (string, []Change) {
	key := func() string { return []string{"j", "k", cluster.ClusterSetLabel}[random.IntN(3)] }
	value := func() string { return []string{"s0", "s1", "", "2"}[random.IntN(4)] }
	cname, sname := fmt.Sprintf("c%d", random.IntN(6)), fmt.Sprintf("s%d", random.IntN(5))
	switch n := random.IntN(10); {
	case n == 0:
		delete(m.clusters, cname)
		return "delete " + cname, x.DeleteCluster(cname)
	case n == 1:
		delete(m.sets, sname)
		return "delete " + sname, x.DeleteSet(sname)
	case n < 6:
		c := newCluster(cname)
		for range random.IntN(4) {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[key()] = value()
		}
		c.Spec.HubAcceptsClient = random.IntN(2) == 0
		if random.IntN(8) == 0 {
			c.UID = types.UID(fmt.Sprint("uid-", random.IntN(3)))
		}
		m.clusters[cname] = c
		return fmt.Sprintf("set %s %v", cname, c.Labels), x.SetCluster(c)
	default:
		var s cluster.ManagedClusterSelector
		switch random.IntN(8) {
		case 0:
			s = legacy()
		case 1:
			s = exclusive(key(), value())
		case 2:
			s = selecting(nil)
		case 3:
			s = selecting(&metav1.LabelSelector{})
		case 4:
			s = matching(key(), value(), key(), value())
		default:
			l := &metav1.LabelSelector{}
			for range 1 + random.IntN(2) {
				r := metav1.LabelSelectorRequirement{Key: key()}
				switch random.IntN(4) {
				case 0:
					r.Operator, r.Values = metav1.LabelSelectorOpIn, []string{value(), value()}
				case 1:
					r.Operator, r.Values = metav1.LabelSelectorOpNotIn, []string{value()}
				case 2:
					r.Operator = metav1.LabelSelectorOpExists
				default:
					r.Operator = metav1.LabelSelectorOpDoesNotExist
				}
				l.MatchExpressions = append(l.MatchExpressions, r)
			}
			s = selecting(l)
		}
		set := newSet(sname, s)
		m.sets[sname] = set
		return fmt.Sprintf("set %s %+v", sname, s), x.SetSet(set)
	}
}
