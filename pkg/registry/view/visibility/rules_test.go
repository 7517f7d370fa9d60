// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// TestRules_RevisionWaitsBrieflyForRules: the stream of members is blocked while a replica waits for rules, so it waits only for a moment.
func TestRules_RevisionWaitsBrieflyForRules(t *testing.T) {
	ann := someone("ann")
	mine, other := state("a"), state("b")
	for _, c := range []struct {
		name   string
		digest string
		// comes is the time after which the replica observes the state of the other.
		comes time.Duration
		takes time.Duration
		known bool
		wakes bool
	}{
		{"of the rules that are here", mine.Hash(), 0, 0, true, false},
		{"of rules that come", other.Hash(), catchUp / 2, catchUp / 2, true, false},
		{"of rules that come too late", other.Hash(), 2 * catchUp, catchUp, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRules(nil, fake.NewClientset().RbacV1())
				r.history.learn(mine)
				r.OfSets().Reset(10, mine.Hash())
				if c.comes > 0 {
					time.AfterFunc(c.comes, func() { r.history.learn(other) })
				}
				start := time.Now()
				r.OfSets().Observe(t.Context(), 20, c.digest)
				if took := time.Since(start); took != c.takes {
					t.Errorf("took %s, want %s", took, c.takes)
				}
				if _, known := r.history.at(20, ann); known != c.known {
					t.Errorf("the rules are known: %t, want %t", known, c.known)
				}
				if woken := len(r.dirty) > 0; woken != c.wakes {
					t.Errorf("looks whether it knows better: %t, want %t", woken, c.wakes)
				}
				time.Sleep(c.comes) // of the fake clock
				synctest.Wait()
				if _, known := r.history.at(20, ann); !known {
					t.Error("the rules have come, and are not known")
				}
				if names, known := r.history.at(19, ann); !known || !names.Has("a") {
					t.Errorf("before the revision: %v, %t", names, known)
				}
			})
		})
	}
}

// TestRules_NewerReplicaWrites: the state in effect is not the latest that this replica has observed, so it writes the latter.
func TestRules_NewerReplicaWrites(t *testing.T) {
	r := newRules(nil, fake.NewClientset().RbacV1())
	before, now := state("a"), state("b")
	r.history.learn(before)
	r.history.learn(now)
	r.OfSets().Reset(10, now.Hash())
	r.proposed = now.Hash()
	r.OfSets().Observe(t.Context(), 20, before.Hash())
	if len(r.dirty) == 0 || r.proposed != "" {
		t.Errorf("woken: %t, and has proposed %q", len(r.dirty) > 0, r.proposed)
	}
}
