// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func TestCreate_RacingSetsOneSucceeds(t *testing.T) {
	h := newHub(t)
	replicas := []replica{h.replica(), h.replica()}
	const racers = 8
	for round := range 10 {
		value := fmt.Sprint("v", round)
		var functions []func() error
		for i := range racers {
			functions = append(functions, func() error {
				return replicas[i%2].create(claiming(fmt.Sprintf("r%d-%d", round, i), region, value))
			})
		}
		winner := -1
		errs := race(functions...)
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					t.Fatalf("both %d and %d have the label", winner, i)
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody has the label: %v", errs)
		}
		for i, err := range errs {
			if i != winner {
				expectConflict(t, err, fmt.Sprintf("r%d-%d", round, winner), region+"="+value)
			}
		}
	}
	if got := h.claims(); len(got) != 10 {
		t.Errorf("claims are %v, want one for each round", got)
	}
}

func TestUpdate_RacingSetsOneSucceeds(t *testing.T) {
	h := newHub(t)
	one, two := h.replica(), h.replica()
	must(t, one.create(claiming("a", region, "a")))
	must(t, two.create(claiming("b", region, "b")))
	for round := range 10 {
		value := fmt.Sprint("v", round)
		errs := race(
			func() error { return one.update("a", claim(region, value)) },
			func() error { return two.update("b", claim(region, value)) })
		switch {
		case errs[0] == nil && errs[1] != nil:
			expectConflict(t, errs[1], "a", region+"="+value)
			must(t, one.update("a", claim(region, "a")))
		case errs[1] == nil && errs[0] != nil:
			expectConflict(t, errs[0], "b", region+"="+value)
			must(t, two.update("b", claim(region, "b")))
		default:
			t.Fatalf("of two writers %v", errs)
		}
		h.expectClaims("region/a=a", "region/b=b")
	}
}

func TestUpdate_MovesClaim(t *testing.T) {
	h := newHub(t)
	one, two := h.replica(), h.replica()
	must(t, one.create(claiming("a", region, "old")))
	expectConflict(t, two.create(claiming("b", region, "old")), "a", region+"=old")
	must(t, one.update("a", claim(region, "new")))
	h.expectClaims("region/new=a")
	must(t, two.create(claiming("b", region, "old")))
	expectConflict(t, two.update("b", claim(region, "new")), "a", region+"=new")
	h.expectClaims("region/new=a", "region/old=b")
	must(t, one.update("a", claimNothing))
	h.expectClaims("region/old=b")
	must(t, two.update("b", claim(region, "new")))
	h.expectClaims("region/new=b")
	must(t, one.update("a", claim(region, "old")))
	h.expectClaims("region/new=b", "region/old=a")
}

func TestUpdate_OtherChangesRetainClaim(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("a", region, "apac")))
	must(t, r.update("a", func(s *cluster.ManagedClusterSet) { s.Annotations = map[string]string{"x": "y"} }))
	h.expectClaims("region/apac=a")
	expectConflict(t, r.create(claiming("b", region, "apac")), "a", region+"=apac")
}

func TestDelete_ReleasesClaim(t *testing.T) {
	h := newHub(t)
	one, two := h.replica(), h.replica()
	must(t, one.create(claiming("a", region, "apac")))
	must(t, two.delete("a"))
	h.expectClaims()
	must(t, two.create(claiming("b", region, "apac")))
	h.expectClaims("region/apac=b")
	must(t, one.create(claiming("a", region, "emea")))
	h.expectClaims("region/apac=b", "region/emea=a")
}

// TestDelete_FinalizersDelayRelease: a set that waits for its finalizers still has its label.
func TestDelete_FinalizersDelayRelease(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	set := claiming("a", region, "apac")
	set.Finalizers = []string{"example.com/hold"}
	must(t, r.create(set))
	must(t, r.delete("a"))
	h.expectClaims("region/apac=a")
	expectConflict(t, r.create(claiming("b", region, "apac")), "a", region+"=apac")
	must(t, r.update("a", func(s *cluster.ManagedClusterSet) { s.Finalizers = nil }))
	h.expectClaims()
	must(t, r.create(claiming("b", region, "apac")))
}

// TestLegacy_SetsAndExclusiveLabelSetsConflict: the key of the legacy type has no special role: its sets and those of type ExclusiveLabel
// exclude each other.
func TestLegacy_SetsAndExclusiveLabelSetsConflict(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(legacy("a")))
	h.expectClaims("clusterset/a=a")
	expectConflict(t, r.create(claiming("b", cluster.ClusterSetLabel, "a")), "a", cluster.ClusterSetLabel+"=a")
	must(t, r.create(claiming("b", cluster.ClusterSetLabel, "c")))
	expectConflict(t, r.create(legacy("c")), "b", cluster.ClusterSetLabel+"=c")
	// The same pair in the other notation does not change the claim.
	must(t, r.update("a", claim(cluster.ClusterSetLabel, "a")))
	h.expectClaims("clusterset/a=a", "clusterset/c=b")
	must(t, r.delete("b"))
	must(t, r.create(legacy("c")))
	h.expectClaims("clusterset/a=a", "clusterset/c=c")
}

func TestLabelSelector_ClaimsNothing(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	for _, name := range []string{"a", "b"} {
		set := legacy(name)
		claimNothing(set)
		must(t, r.create(set))
	}
	h.expectClaims()
}

func TestDryRun_ClaimsAndReleasesNothing(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("a", region, "apac"), dryRun))
	h.expectClaims()
	must(t, r.create(claiming("a", region, "apac")))
	must(t, r.update("a", claim(region, "emea"), dryRun))
	must(t, r.delete("a", dryRun))
	h.expectClaims("region/apac=a")
	must(t, r.create(claiming("b", region, "emea")))
}

func TestCreate_ExistingSetRetainsClaim(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("a", region, "apac")))
	for _, value := range []string{"apac", "emea"} {
		if err := r.create(claiming("a", region, value)); !apierrors.IsAlreadyExists(err) {
			t.Errorf("created again with %s: got %v, want 409 AlreadyExists", value, err)
		}
	}
	h.expectClaims("region/apac=a")
}

// TestClaims_AreTransactional: the claim is written and freed at the revision of the set itself, so no crash can leave one without
// the other.
func TestClaims_AreTransactional(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	now, err := h.etcd.Get(t.Context(), "/")
	must(t, err)
	watch := h.etcd.Watch(t.Context(), h.config.Prefix+"/", clientv3.WithPrefix(),
		clientv3.WithRev(now.Header.Revision+1))
	must(t, r.create(claiming("a", region, "apac")))
	must(t, r.update("a", claim(region, "emea")))
	must(t, r.update("a", claimNothing))
	must(t, r.update("a", claim(region, "apac")))
	must(t, r.delete("a"))
	writes := map[int64]int{}
	var order []int64
	const events = 2 + 3 + 2 + 2 + 2
	for n := 0; n < events; {
		response := <-watch
		must(t, response.Err())
		for _, e := range response.Events {
			if writes[e.Kv.ModRevision] == 0 {
				order = append(order, e.Kv.ModRevision)
			}
			writes[e.Kv.ModRevision]++
			n++
		}
	}
	var sizes []int
	for _, revision := range order {
		sizes = append(sizes, writes[revision])
	}
	if got, want := fmt.Sprint(sizes), "[2 3 2 2 2]"; got != want {
		t.Errorf("the transactions wrote %s keys, want %s: each the set and its claims", got, want)
	}
}

// TestClaims_RacingWriters: after concurrent writes, each claim has its set and each set its claim.
func TestClaims_RacingWriters(t *testing.T) {
	h := newHub(t)
	replicas := []replica{h.replica(), h.replica()}
	var functions []func() error
	for i := range 6 {
		r, name := replicas[i%2], fmt.Sprintf("s%d", i%3)
		functions = append(functions, func() error {
			for n := range 30 {
				value := fmt.Sprint("v", (n*7+i)%4)
				var err error
				switch (n + i) % 3 {
				case 0:
					err = r.create(claiming(name, region, value))
				case 1:
					err = r.update(name, claim(region, value))
				default:
					err = r.delete(name)
				}
				if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
					return err
				}
			}
			return nil
		})
	}
	for _, err := range race(functions...) {
		must(t, err)
	}
	r := replicas[0]
	list, err := r.List(r.context(), nil)
	must(t, err)
	held := map[string]bool{}
	for _, c := range h.claims() {
		held[c] = true
	}
	sets := list.(*cluster.ManagedClusterSetList).Items
	for _, s := range sets {
		if label := s.Spec.ClusterSelector.ExclusiveLabel; !held["region/"+label.Value+"="+s.Name] {
			t.Errorf("the set %s has no claim on %s: %v", s.Name, label.Value, h.claims())
		}
	}
	if len(held) != len(sets) {
		t.Errorf("%d claims of %d sets: %v", len(held), len(sets), h.claims())
	}
}

// TestDelete_SetWithoutClaim: only the holder's own claim is freed: a set that was created before claims existed may have a label
// that another set claims.
func TestDelete_SetWithoutClaim(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("a", region, "apac")))
	_, err := h.etcd.Put(t.Context(), h.config.Prefix+"/exclusive-labels/"+region+"/apac", "b")
	must(t, err)
	must(t, r.update("a", claim(region, "emea")))
	h.expectClaims("region/apac=b", "region/emea=a")
	must(t, r.update("a", claimNothing))
	must(t, r.delete("a"))
	h.expectClaims("region/apac=b")
}
