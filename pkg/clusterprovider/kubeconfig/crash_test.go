// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/sample"
)

// step is an action of users, and the expected final state.
type step struct {
	name string
	do   func(w *world)
	// away has the actions of users while no process runs. It may be nil.
	away func(w *world)
	want func(w *world)
}

// TestCrash_AtEachWrite ends a provider after each of its writes, to the hub, to the cluster and to the issuers that the cluster trusts. The next
// process must reach the same state as one that was never interrupted, and the one after that finds nothing to do. TestAccessCrash kills the program
// itself, after a few of these writes.
func TestCrash_AtEachWrite(t *testing.T) {
	w := newWorld(t)
	w.create(newCluster())
	w.settles()
	w.ready()
	w.atEachWrite(accessSteps)
	deletesCluster(w)
	w.settles()
	w.atEachWrite(clusterSteps)
	w.ended()
}

// accessSteps begin and end without a request.
var accessSteps = []step{
	{name: "a token", do: asks(aToken), want: granted},
	{name: "other rights", do: asksOtherwise(anotherToken), want: granted},
	{name: "OIDC in place of a token", do: asksOtherwise(byOIDC), want: granted},
	{name: "OIDC deleted", do: deletes, want: gone},
	{name: "OIDC", do: asks(byOIDC), want: granted},
	{name: "a token in place of OIDC", do: asksOtherwise(aToken), want: granted},
	{name: "a token deleted", do: deletes, want: gone},
	{name: "a token, deleted before it is given", do: asks(aToken), away: deletes, want: gone},
	{name: "OIDC, deleted before it is given", do: asks(byOIDC), away: deletes, want: gone},
	{name: "a token, with other rights before it is given", do: asks(aToken), away: asksOtherwise(anotherToken), want: granted},
	{name: "denied, and pending again", do: phase(v1alpha1.REQUEST_DENIED), away: phase(v1alpha1.REQUEST_PENDING), want: notGranted},
	{name: "deleted after it was denied", do: deletes, want: gone},
}

// clusterSteps begin and end without a Cluster.
var clusterSteps = []step{
	{name: "a cluster", do: begins, want: has},
	{name: "withdrawn, and allowed again", do: withdraws, away: allows, want: has},
	{name: "withdrawn", do: withdraws, want: hasNot},
	{name: "allowed again", do: allows, want: has},
	{name: "deleted, with its request", do: deletesCluster, away: deletes, want: nothing},
	{name: "a cluster, withdrawn before it is given", do: begins, away: withdraws, want: hasNot},
	{name: "deleted after it was withdrawn", do: deletesCluster, away: deletes, want: nothing},
}

// atEachWrite runs steps, one after the other, with a provider that is killed in each after its n-th write, for every n.
func (w *world) atEachWrite(steps []step) {
	w.t.Helper()
	survived := sets.New[int]()
	for n := 1; len(survived) < len(steps); n++ {
		if !sample.Picks(w.t, n) {
			continue
		}
		for i, s := range steps {
			s.do(w)
			p := w.process(n)
			if !survived.Has(i) {
				_ = p.look()
				if !p.dead {
					w.t.Logf("%s: %d writes", s.name, len(p.written))
					survived.Insert(i)
				}
			}
			if p.dead {
				w.safe()
			}
			if s.away != nil {
				s.away(w)
			}
			w.settles()
			if !p.dead {
				continue
			}
			s.want(w)
			if next := w.process(long); next.look() != nil || len(next.written) > 0 {
				w.t.Errorf("the next process has still to do %q", next.written)
			}
			if w.t.Failed() {
				w.t.Fatalf("%s: killed after %q", s.name, p.written)
			}
		}
	}
}

func asks(ask func(*v1alpha1.AccessRequestSpec)) func(*world) {
	return func(w *world) { w.request("ann", ask) }
}

// changes returns an action that changes the request.
func changes(change func(*v1alpha1.AccessRequest)) func(*world) {
	return func(w *world) { patch(w, named("ann"), change) }
}

func asksOtherwise(ask func(*v1alpha1.AccessRequestSpec)) func(*world) {
	return changes(func(ar *v1alpha1.AccessRequest) {
		ask(&ar.Spec)
		ar.Status.Phase = v1alpha1.REQUEST_PENDING
	})
}

func phase(to string) func(*world) {
	return changes(func(ar *v1alpha1.AccessRequest) { ar.Status.Phase = to })
}

func deletes(w *world)        { w.delete(named("ann")) }
func deletesCluster(w *world) { w.delete(newCluster()) }
func withdraws(w *world)      { w.allow("") }
func allows(w *world)         { w.allow(teams) }

func begins(w *world) {
	w.allow(teams)
	w.create(newCluster())
	w.request("ann", aToken)
}

func granted(w *world)    { w.granted("ann") }
func notGranted(w *world) { w.granted() }

func gone(w *world) {
	w.gone(named("ann"))
	w.granted()
}

func has(w *world) {
	w.ready()
	w.granted("ann")
}

func hasNot(w *world) {
	w.granted()
	if holder := w.holder(); holder != "" {
		w.t.Errorf("the holder is %s", holder)
	}
}

func nothing(w *world) {
	w.gone(newCluster())
	w.gone(named("ann"))
	hasNot(w)
}
