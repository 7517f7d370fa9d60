// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// world is a fleet to which something is rolled out.
type world struct {
	*rand.Rand
	strategy *Strategy
	groups   []Group
	now      time.Time
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), now: start}
	w.strategy = &Strategy{
		Type:             []Type{All, Progressive, Progressive, PerGroup}[w.IntN(4)],
		MaxFailures:      []intstr.IntOrString{intstr.FromInt(w.IntN(4)), intstr.FromString("20%"), intstr.FromInt(100)}[w.IntN(3)],
		MaxConcurrency:   []intstr.IntOrString{intstr.FromInt(w.IntN(5)), intstr.FromString("30%"), intstr.FromInt(100)}[w.IntN(3)],
		MinSuccessTime:   time.Duration(w.IntN(2)) * time.Minute,
		ProgressDeadline: time.Duration(w.IntN(2)) * 5 * time.Minute,
	}
	for i := range 1 + w.IntN(4) {
		g := Group{Index: i, Name: []string{"", "canary"}[w.IntN(2)]}
		for range w.IntN(5) {
			g.Clusters = append(g.Clusters, &ClusterProgress{Name: fmt.Sprintf("c%d-%d", w.IntN(1000), len(g.Clusters)+10*i)})
		}
		w.groups = append(w.groups, g)
	}
	for range w.IntN(3) {
		if i := w.IntN(len(w.groups)); len(w.groups[i].Clusters) > 0 {
			w.strategy.Mandatory = append(w.strategy.Mandatory, MandatoryGroup{Index: i})
		}
	}
	return w
}

func (w *world) clusters() []*ClusterProgress {
	var all []*ClusterProgress
	for _, g := range w.groups {
		all = append(all, g.Clusters...)
	}
	return all
}

// step decides, checks what must always hold, and writes.
func (w *world) step(t *testing.T) *Plan {
	t.Helper()
	p := Decide(w.strategy, w.groups, w.now)
	if again := Decide(w.strategy, w.groups, w.now); !reflect.DeepEqual(p, again) {
		t.Fatalf("%+v: not the same again", w.strategy)
	}
	// The order of the clusters makes no difference.
	shuffled := slices.Clone(w.groups)
	w.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for i := range shuffled {
		shuffled[i].Clusters = slices.Clone(shuffled[i].Clusters)
		w.Shuffle(len(shuffled[i].Clusters), func(a, b int) {
			c := shuffled[i].Clusters
			c[a], c[b] = c[b], c[a]
		})
	}
	if again := Decide(w.strategy, shuffled, w.now); !slices.Equal(p.Write, again.Write) || !reflect.DeepEqual(p.Clusters, again.Clusters) {
		t.Fatalf("%+v: other clusters in another order: %v, %v", w.strategy, p.Write, again.Write)
	}
	total := len(w.clusters())
	if len(p.Clusters) != total {
		t.Fatalf("%d of %d clusters are told of", len(p.Clusters), total)
	}
	failed := p.Counts[Failed] + p.Counts[TimeOut]
	if w.strategy.Type == Progressive && len(p.Write) > 0 {
		if busy := p.Counts[Writing] + p.Counts[InProgress] + p.Counts[Failed] + p.Counts[Soaking]; busy > w.strategy.concurrency(total) {
			t.Fatalf("%+v: %d in progress", w.strategy, busy)
		}
		if failed > w.strategy.failures(total) {
			t.Fatalf("%+v: goes on after %d failures", w.strategy, failed)
		}
	}
	if w.strategy.Type == PerGroup {
		w.checkGroups(t, p)
	}
	for _, c := range w.clusters() {
		if slices.Contains(p.Write, c.Name) {
			if c.Current {
				t.Fatalf("%s is written again", c.Name)
			}
			*c = ClusterProgress{Name: c.Name, Current: true, Written: w.now, Observation: Observation{Waits: "waits"}}
		}
		if slices.Contains(p.Note, c.Name) {
			c.Succeeded = w.now
		}
	}
	if after := Decide(w.strategy, w.groups, w.now); len(after.Write)+len(after.Note) > 0 {
		t.Fatalf("%+v: not steady: %v, and then %v", w.strategy, p.Write, after.Write)
	}
	return p
}

// checkGroups fails if a group is written before those before it are done.
func (w *world) checkGroups(t *testing.T, p *Plan) {
	t.Helper()
	isMandatory := func(index int) bool {
		return slices.ContainsFunc(w.strategy.Mandatory, func(m MandatoryGroup) bool { return m.Index == index })
	}
	state := map[string]ClusterState{}
	for _, o := range p.Clusters {
		state[o.Name] = o.State
	}
	for _, g := range w.groups {
		for _, before := range w.groups {
			first := isMandatory(before.Index) && !isMandatory(g.Index) || isMandatory(before.Index) == isMandatory(g.Index) && !isMandatory(g.Index) && before.Index < g.Index
			if !first {
				continue
			}
			for _, c := range g.Clusters {
				for _, b := range before.Clusters {
					if s := state[b.Name]; state[c.Name] == Writing && s != Succeeded && (s != TimeOut && s != Blocked || isMandatory(before.Index)) {
						t.Fatalf("%+v: %s is written while %s is %s", w.strategy, c.Name, b.Name, s)
					}
				}
			}
		}
	}
}

// If everything succeeds, every cluster is reached, and the rollout ends.
func TestProperty_EveryClusterIsReached(t *testing.T) {
	for seed := range uint64(2000) {
		w := newWorld(seed)
		for rounds := 0; ; rounds++ {
			p := w.step(t)
			if p.Done() && p.Next.IsZero() && len(p.Note) == 0 {
				break
			}
			if rounds > 200 {
				t.Fatalf("seed %d, %+v: does not end: %s", seed, w.strategy, p.Message())
			}
			moved := false
			for _, c := range w.clusters() {
				if c.Current && c.Progress != Succeeds && w.IntN(2) == 0 {
					c.Observation = Observation{Progress: Succeeds, Since: w.now.Add(-time.Hour)}
				}
				moved = moved || c.Current && c.Progress != Succeeds
			}
			if !moved && !p.Next.IsZero() {
				w.now = p.Next
			}
		}
	}
}

// Whatever happens, the invariants hold, and the time of the next plan is not in the past.
func TestProperty_Invariants(t *testing.T) {
	for seed := range uint64(2000) {
		w := newWorld(seed)
		for range 30 {
			p := w.step(t)
			if !p.Next.IsZero() && !p.Next.After(w.now) {
				t.Fatalf("seed %d: looks again at %v, and it is %v", seed, p.Next, w.now)
			}
			if !p.Next.IsZero() && w.IntN(2) == 0 {
				// Time alone changes nothing before that.
				if early := Decide(w.strategy, w.groups, p.Next.Add(-1)); len(early.Write) > 0 {
					t.Fatalf("seed %d: looks again too late", seed)
				}
				w.now = p.Next
			} else {
				w.now = w.now.Add(time.Duration(w.IntN(90)) * time.Second)
			}
			for _, c := range w.clusters() {
				if c.Current && w.IntN(3) == 0 {
					c.Observation = Observation{Progress: Progress(w.IntN(4)), Since: w.now, Waits: "waits"}
				}
				switch w.IntN(40) {
				case 0:
					c.Current = false
				case 1:
					c.Blocked, c.Current = "no", false
				case 2:
					c.Leaving, c.Current = true, false
				case 3:
					c.Blocked, c.Leaving = "", false
				}
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	g := Group{}
	for i := range 10_000 {
		g.Clusters = append(g.Clusters, &ClusterProgress{Name: fmt.Sprintf("cluster-%05d", i), Current: i < 5000, Written: start, Observation: Observation{Progress: Succeeds}})
	}
	s := &Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt(100)}
	for b.Loop() {
		if p := Decide(s, []Group{g}, start); len(p.Write) != 100 {
			b.Fatal(p.Message())
		}
	}
}
