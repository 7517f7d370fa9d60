// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// placement returns the placement of a policy on a node.
func placement(t *testing.T, w *world, node, cluster, policy string) *Placement {
	t.Helper()
	w.node.Name, w.node.Facts.ClusterID, w.deployment.Name = node, cluster, policy
	n, d := w.read(t)
	return &Placement{Node: n, Deployment: d, Decision: Decide(n, d)}
}

// stay returns the nodes and policies of the placements that stay, in any order of the list.
func stay(t *testing.T, list ...*Placement) []string {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	var first []string
	for range 10 {
		var copies []*Placement
		for _, p := range list {
			c := *p
			copies = append(copies, &c)
		}
		random.Shuffle(len(copies), func(i, j int) { copies[i], copies[j] = copies[j], copies[i] })
		Once(copies)
		var got []string
		for _, p := range copies {
			switch {
			case p.Decision.Compatible:
				got = append(got, p.Node.name+"/"+p.Deployment.spec.Name)
			case p.Decision.Reason == ThereAlready && (p.Decision.Namespace != "" || p.Decision.Version != "" || p.Decision.Message == ""):
				t.Errorf("got %+v", p.Decision)
			}
		}
		slices.Sort(got)
		if first != nil && !slices.Equal(first, got) {
			t.Fatalf("got %v in one order, and %v in another", first, got)
		}
		first = got
	}
	return first
}

// D25: a cluster-scoped and a namespace-scoped agent of one cluster would both deploy it to one namespace.
func TestOnce_TwoAgentsOfOneCluster(t *testing.T) {
	all := placement(t, newWorld(ClusterScoped, "agent").to("abc"), "all", "uid", "p")
	one := placement(t, newWorld(NamespaceScoped, "abc").to("abc"), "one", "uid", "p")
	if got := stay(t, all, one); !slices.Equal(got, []string{"one/p"}) {
		t.Errorf("got %v, want the agent with fewer rights", got)
	}
	all.Placed = true
	if got := stay(t, all, one); !slices.Equal(got, []string{"all/p"}) {
		t.Errorf("got %v, want what is there already", got)
	}
	Once([]*Placement{all, one})
	if one.Decision.Reason != ThereAlready || !strings.Contains(one.Decision.Message, "node all and the policy p") {
		t.Errorf("got %+v", one.Decision)
	}
}

func TestOnce_Duplicates(t *testing.T) {
	scoped := func(namespace string) *world { return newWorld(NamespaceScoped, namespace) }
	other := scoped("abc")
	other.deployment.Service, other.deployment.Services[0].Name = "other", "other"
	incompatible := scoped("abc").embedded("xyz")
	for name, test := range map[string]struct {
		list []*Placement
		want []string
	}{
		"two policies on one node": {[]*Placement{placement(t, scoped("abc"), "n", "uid", "p2"), placement(t, scoped("abc"), "n", "uid", "p1")}, []string{"n/p1"}},
		"two policies on one node of an unknown cluster": {[]*Placement{placement(t, scoped("abc"), "n", "", "p2"), placement(t, scoped("abc"), "n", "", "p1")},
			[]string{"n/p1"}},
		"two namespaces":      {[]*Placement{placement(t, scoped("abc"), "a", "uid", "p"), placement(t, scoped("xyz"), "b", "uid", "p")}, []string{"a/p", "b/p"}},
		"two clusters":        {[]*Placement{placement(t, scoped("abc"), "a", "uid1", "p"), placement(t, scoped("abc"), "b", "uid2", "p")}, []string{"a/p", "b/p"}},
		"two unknown ones":    {[]*Placement{placement(t, scoped("abc"), "a", "", "p"), placement(t, scoped("abc"), "b", "", "p")}, []string{"a/p", "b/p"}},
		"a name like an id":   {[]*Placement{placement(t, scoped("abc"), "uid", "", "p"), placement(t, scoped("abc"), "b", "uid", "p")}, []string{"b/p", "uid/p"}},
		"two services":        {[]*Placement{placement(t, scoped("abc"), "a", "uid", "p"), placement(t, other, "b", "uid", "p")}, []string{"a/p", "b/p"}},
		"one does not get it": {[]*Placement{placement(t, scoped("abc"), "b", "uid", "p"), placement(t, incompatible, "a", "uid", "p")}, []string{"b/p"}},
		"devices": {[]*Placement{placement(t, scoped("abc").device(), "a", "uid", "p"), placement(t, scoped("abc").device(), "b", "uid", "p")},
			[]string{"a/p", "b/p"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stay(t, test.list...); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
