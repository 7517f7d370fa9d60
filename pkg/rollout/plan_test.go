// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// cluster returns a cluster such as "c1 fail": ok, run, fail, new (not applied), old (not current), gone (being deleted), no (may not be written).
// A current one was written at the start.
func cluster(text string) *ClusterProgress {
	name, state, _ := strings.Cut(text, " ")
	c := &ClusterProgress{Name: name, Current: true, Written: start}
	switch state {
	case "ok":
		c.Progress = Succeeds
	case "run":
		c.Observation = Observation{Progress: Progresses, Waits: "runs"}
	case "fail":
		c.Observation = Observation{Progress: Fails, Waits: "fails"}
	case "new":
		c.Waits = "not there"
	case "gone":
		c.Leaving, c.Current = true, false
	case "no":
		c.Blocked, c.Current = "not yours", false
	default:
		c.Current = false
	}
	return c
}

func group(index int, name string, clusters ...string) Group {
	g := Group{Index: index, Name: name}
	for _, text := range clusters {
		g.Clusters = append(g.Clusters, cluster(text))
	}
	return g
}

func one(clusters ...string) []Group { return []Group{group(0, "", clusters...)} }

func TestDecide(t *testing.T) {
	progressive := func(n int, change ...func(*Strategy)) *Strategy {
		s := &Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt(n)}
		for _, c := range change {
			c(s)
		}
		return s
	}
	mandatory := func(groups ...MandatoryGroup) func(*Strategy) { return func(s *Strategy) { s.Mandatory = groups } }
	failures := func(n intstr.IntOrString) func(*Strategy) { return func(s *Strategy) { s.MaxFailures = n } }
	deadline := func(s *Strategy) { s.ProgressDeadline = time.Minute }
	perGroup := func(change ...func(*Strategy)) *Strategy {
		s := progressive(1, change...)
		s.Type = PerGroup
		return s
	}
	canary := MandatoryGroup{Name: "canary"}
	for name, test := range map[string]struct {
		strategy *Strategy
		groups   []Group
		after    time.Duration
		write    string
		// waits has the cluster and what it waits for.
		waits map[string]string
		next  time.Duration
	}{
		"all at once": {strategy: &Strategy{MaxFailures: intstr.FromInt(1)}, groups: one("c3 old", "c1 fail", "c2 old", "c4 fail"), write: "c2 c3"},
		"all, mandatory groups or soak do not count": {
			strategy: &Strategy{Type: All, MinSuccessTime: time.Hour, Mandatory: []MandatoryGroup{canary}}, groups: one("c1 ok", "c2 old"), write: "c2",
		},
		"the first": {strategy: progressive(2), groups: one("c3 old", "c2 old", "c1 old"), write: "c1 c2", waits: map[string]string{"c3": "maxConcurrency is 2, and as many are in progress"}},
		"a place is taken by what is not applied": {
			strategy: progressive(2), groups: one("c1 new", "c2 ok", "c3 old", "c4 old"), write: "c3", waits: map[string]string{"c1": "not there"},
		},
		"a place is taken by what runs":                {strategy: progressive(1), groups: one("c1 run", "c2 old")},
		"a failure takes a place until the deadline":   {strategy: progressive(1, failures(intstr.FromInt(1)), deadline), groups: one("c1 fail", "c2 old"), next: time.Minute},
		"a failure gives its place after the deadline": {strategy: progressive(1, failures(intstr.FromInt(1)), deadline), groups: one("c1 fail", "c2 old"), after: time.Minute, write: "c2"},
		"a failure takes a place without a deadline":   {strategy: progressive(1, failures(intstr.FromInt(1))), groups: one("c1 fail", "c2 old"), after: 1000 * time.Hour},
		"what is not applied in time is a failure": {
			strategy: progressive(1, deadline), groups: one("c1 new", "c2 old"), after: time.Minute,
			waits: map[string]string{"c1": "no success within 1m0s: not there", "c2": "1 failed, and maxFailures is 0"},
		},
		"too many have failed": {
			strategy: progressive(2, failures(intstr.FromInt(1))), groups: one("c1 fail", "c2 fail", "c3 old"),
			waits: map[string]string{"c1": "fails", "c3": "2 failed, and maxFailures is 1"},
		},
		"failures, as a percentage rounded up": {strategy: progressive(5, failures(intstr.FromString("34%"))), groups: one("c1 fail", "c2 fail", "c3 old"), write: "c3"},
		"bounds above the number are clamped":  {strategy: progressive(100, failures(intstr.FromInt(100))), groups: one("c1 fail", "c2 fail", "c3 old"), write: "c3"},
		"no bound is all":                      {strategy: progressive(0), groups: one("c1 run", "c2 old", "c3 old"), write: "c2 c3"},
		"half of them":                         {strategy: &Strategy{Type: Progressive, MaxConcurrency: intstr.FromString("50%")}, groups: one("c1 old", "c2 old", "c3 old"), write: "c1 c2"},
		"a bound that is none writes nothing":  {strategy: &Strategy{Type: Progressive, MaxConcurrency: intstr.FromString("x")}, groups: one("c1 old")},
		"mandatory first": {
			strategy: progressive(5, mandatory(canary)), groups: []Group{group(0, "", "a1 old"), group(1, "canary", "c1 old"), group(2, "canary", "c2 old")}, write: "c1 c2",
			waits: map[string]string{"a1": `the mandatory decision group "canary" is not done, such as "c1"`},
		},
		"mandatory ones keep to the concurrency": {strategy: progressive(1, mandatory(canary)), groups: []Group{group(0, "canary", "c1 old", "c2 old")}, write: "c1"},
		"mandatory, one after the other": {
			strategy: progressive(5, mandatory(MandatoryGroup{Index: 1}, canary)), groups: []Group{group(0, "canary", "c1 old"), group(1, "", "a1 run")},
			waits: map[string]string{"c1": `the mandatory decision group 1 is not done, such as "a1"`},
		},
		"mandatory is done": {strategy: progressive(5, mandatory(canary)), groups: []Group{group(0, "canary", "c1 ok"), group(1, "", "a1 old")}, write: "a1"},
		"mandatory has failed": {
			strategy: progressive(5, mandatory(canary), failures(intstr.FromInt(5)), deadline), groups: []Group{group(0, "canary", "c1 fail", "c2 old"), group(1, "", "a1 old")}, after: time.Hour,
			waits: map[string]string{"c2": `1 failed in the mandatory decision group "canary", where none may`, "a1": `1 failed in the mandatory decision group "canary", where none may`},
		},
		"mandatory fails": {strategy: progressive(5, mandatory(canary), failures(intstr.FromInt(5))), groups: []Group{group(0, "canary", "c1 fail", "c2 old")}},
		"mandatory, told of twice": {
			strategy: progressive(5, mandatory(canary, MandatoryGroup{Index: 0})), groups: []Group{group(0, "canary", "c1 old", "c2 ok"), group(1, "", "a1 old")}, write: "c1",
		},
		"mandatory is not there": {
			strategy: progressive(5, mandatory(canary)), groups: one("a1 old"), waits: map[string]string{"a1": `the mandatory decision group "canary" has no clusters, or is not decided yet`},
		},
		"mandatory must not be written": {
			strategy: progressive(5, mandatory(canary)), groups: []Group{group(0, "canary", "c1 no"), group(1, "", "a1 old")},
			waits: map[string]string{"c1": "not yours", "a1": `the mandatory decision group "canary" is not done, such as "c1"`},
		},
		"what must not be written holds up no others": {strategy: progressive(1), groups: one("c1 no", "c2 old"), write: "c2", waits: map[string]string{"c1": "not yours"}},
		"what is being deleted holds up no others":    {strategy: progressive(1), groups: one("c1 gone", "c2 old"), write: "c2", waits: map[string]string{"c1": "its work is being deleted, and then a new one is created"}},
		"group by group": {strategy: perGroup(), groups: []Group{group(1, "", "a1 old"), group(0, "", "b1 old", "b2 old")}, write: "b1 b2", waits: map[string]string{"a1": `the decision group 0 is not done, such as "b1"`}},
		"the next group": {strategy: perGroup(), groups: []Group{group(1, "", "a1 old"), group(0, "", "b1 ok", "b2 ok")}, write: "a1"},
		"a group in which one failed": {
			strategy: perGroup(failures(intstr.FromString("50%")), deadline), groups: []Group{group(1, "", "a1 old"), group(0, "", "b1 fail", "b2 ok")}, after: time.Minute, write: "a1",
		},
		"a group in which too many failed": {
			strategy: perGroup(failures(intstr.FromString("50%")), deadline), groups: []Group{group(1, "", "a1 old"), group(0, "", "b1 fail", "b2 fail")}, after: time.Minute,
			waits: map[string]string{"a1": "2 failed in the decision group 0, and maxFailures is 1"},
		},
		"groups after mandatory ones": {
			strategy: perGroup(mandatory(canary)), groups: []Group{group(0, "", "a1 old"), group(1, "canary", "c1 ok"), group(2, "", "b1 old")}, write: "a1",
			waits: map[string]string{"b1": `the decision group 0 is not done, such as "a1"`},
		},
		"slices of a group": {strategy: perGroup(), groups: []Group{group(0, "", "a1 old"), group(0, "", "a2 old"), group(1, "", "b1 old")}, write: "a1 a2"},
		"a cluster that moves is in the later group": {
			strategy: perGroup(), groups: []Group{group(1, "", "a1 old"), group(0, "", "a1 old", "b1 run")}, waits: map[string]string{"a1": `the decision group 0 is not done, such as "b1"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(test.strategy, test.groups, start.Add(test.after))
			if got := strings.Join(p.Write, " "); got != test.write {
				t.Errorf("written %q, want %q", got, test.write)
			}
			for _, o := range p.Clusters {
				if want, tested := test.waits[o.Name]; tested && o.Waits != want {
					t.Errorf("%s waits: %q, want %q", o.Name, o.Waits, want)
				}
				if o.Waits == "" && o.State != Writing && o.State != Succeeded {
					t.Errorf("%s is %s and says nothing", o.Name, o.State)
				}
			}
			if want := start.Add(test.next); test.next > 0 && !p.Next.Equal(want) || test.next == 0 && !p.Next.IsZero() {
				t.Errorf("next %v, want %v", p.Next, want)
			}
			if p.Done() {
				t.Error("done")
			}
		})
	}
}

func TestDecide_Soak(t *testing.T) {
	s := &Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt(1), MinSuccessTime: time.Minute}
	groups := one("c1 ok", "c2 old")
	c := groups[0].Clusters[0]
	// Its condition has been true for long, since an earlier generation.
	c.Since = start.Add(-time.Hour)
	p := Decide(s, groups, start)
	if !slices.Equal(p.Note, []string{"c1"}) || len(p.Write) > 0 || !p.Next.Equal(start.Add(time.Minute)) {
		t.Fatalf("first seen: %+v", p)
	}
	c.Succeeded = start
	if p := Decide(s, groups, start.Add(time.Minute-1)); len(p.Note)+len(p.Write) > 0 || p.Counts[Soaking] != 1 {
		t.Fatalf("soaking: %+v", p)
	}
	if p := Decide(s, groups, start.Add(time.Minute)); !slices.Equal(p.Write, []string{"c2"}) || !p.Next.IsZero() {
		t.Fatalf("after it: %+v", p)
	}
	// It did not succeed in between.
	c.Since = start.Add(30 * time.Second)
	if p := Decide(s, groups, start.Add(time.Minute)); len(p.Write) > 0 || !p.Next.Equal(start.Add(90*time.Second)) {
		t.Fatalf("once more: %+v", p)
	}
	// The clock of the cluster is fast, which delays nothing.
	c.Since = start.Add(time.Hour)
	if p := Decide(s, groups, start.Add(time.Minute)); !slices.Equal(p.Write, []string{"c2"}) {
		t.Fatalf("ahead: %+v", p)
	}
	groups = one("c1 ok", "c2 ok")
	if p := Decide(s, groups, start); !p.Done() {
		t.Error("successes that soak are no end")
	}
}

// A condition that is older than the work does not end its time.
func TestDecide_DeadlineStartsWithWork(t *testing.T) {
	s := &Strategy{Type: Progressive, ProgressDeadline: time.Minute}
	groups := one("c1 run")
	c := groups[0].Clusters[0]
	for since, end := range map[time.Duration]time.Duration{-time.Hour: 60 * time.Second, 10 * time.Second: 70 * time.Second, time.Hour: 60 * time.Second} {
		c.Since = start.Add(since)
		if p := Decide(s, groups, start.Add(end-1)); p.Counts[InProgress] != 1 {
			t.Errorf("since %s: %+v", since, p)
		}
		if p := Decide(s, groups, start.Add(end)); p.Counts[TimeOut] != 1 {
			t.Errorf("since %s: %+v", since, p)
		}
	}
	c.Written = time.Time{}
	if p := Decide(s, groups, start.Add(time.Hour)); p.Counts[InProgress] != 1 || !p.Next.IsZero() {
		t.Errorf("not known when written: %+v", p)
	}
}

// An author who may not write any more does not affect existing works.
func TestDecide_BlockedAndCurrent(t *testing.T) {
	groups := one("c1 ok")
	groups[0].Clusters[0].Blocked = "not yours"
	if p := Decide(&Strategy{}, groups, start); !p.Done() {
		t.Errorf("%+v", p)
	}
}

func TestPlan_Message(t *testing.T) {
	s := &Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt(5)}
	var clusters []string
	for i := range 20 {
		clusters = append(clusters, fmt.Sprintf("c%02d %s", i, []string{"ok", "run", "old", "no"}[i/5]))
	}
	got := Decide(s, one(clusters...), start).Message()
	if want := "5 of 20 clusters have succeeded; 5 not allowed: c15 (not yours), c16 (not yours), c17 (not yours), and 2 more; " +
		"5 in progress: c05 (runs), c06 (runs), c07 (runs), and 2 more; " +
		"5 waiting: c10 (maxConcurrency is 5, and as many are in progress), c11 (maxConcurrency is 5, and as many are in progress), " +
		"c12 (maxConcurrency is 5, and as many are in progress), and 2 more"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Decide(s, one("c1 fail", "c2 old"), start).Message(),
		"0 of 2 clusters have succeeded; 1 failed: c1 (fails); 1 waiting: 1 failed, and maxFailures is 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Decide(s, one("c1 run"), start).Message(), "0 of 1 cluster has succeeded; 1 in progress: c1 (runs)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Decide(s, nil, start).Message(), "0 of 0 clusters have succeeded"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "None": 0, "30m": 30 * time.Minute, "5s": 5 * time.Second, "5": -1, "5|": -1, "-5m": -1} {
		if got, err := ParseDeadline(text); got != want && (want >= 0 || err == nil) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]int{"3": 3, "10": 7, "99999999999999999999": 7, "0%": 0, "1%": 1, "50%": 4, "100%": 7, "300%": 7, "": -1, "%": -1, "-1": -1, "+1": -1} {
		if got, err := ParseBound("maxFailures", intstr.FromString(text), 7); got != want && (want >= 0 || err == nil) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if got, err := ParseBound("maxFailures", intstr.FromInt(-3), 7); got != 0 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, s := range []Strategy{{Type: "Other"}, {MaxFailures: intstr.FromString("x")}, {MaxConcurrency: intstr.FromString("x")}} {
		if s.Validate() == nil {
			t.Errorf("%+v is valid", s)
		}
	}
	if err := (&Strategy{Type: PerGroup}).Validate(); err != nil {
		t.Error(err)
	}
}
