// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// target is a goal for a result.
type target struct {
	Part    string `json:"part"`
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Reached bool   `json:"reached"`
}

// largeFleet is the fleet size from which on the stricter targets apply.
const largeFleet = 100_000

func (r *report) reach(part, what, want, got string, reached bool) {
	r.Targets = append(r.Targets, target{part, what, want, got, reached})
}

func (r *report) atLeast(part, what string, want, got float64) {
	r.reach(part, what, fmt.Sprintf("at least %.4gx", want), fmt.Sprintf("%.4gx", got), got >= want)
}

func (r *report) atMost(part, what, unit string, want, got float64) {
	r.reach(part, what, fmt.Sprintf("at most %.2f%s", want, unit), fmt.Sprintf("%.2f%s", got, unit), got <= want)
}

func (r *report) none(part, what string, got int) {
	r.reach(part, what, "none", fmt.Sprint(got), got == 0)
}

// judge compares the results with the targets. Those of lists apply from 10,000 clusters on.
func (r *report) judge() {
	for _, l := range r.Lists {
		want := 10.0
		if l.Fleet >= largeFleet {
			want = 50
		}
		if l.Fleet < stageSize || l.Fleet != stageSize && l.Fleet != r.Conditions.Fleet {
			continue
		}
		switch l.Name {
		case listMembersDirect:
			r.atLeast("a", fmt.Sprintf("%s, at %d clusters: faster than the peer", l.Name, l.Fleet), want, l.Factor)
		case listLabelDirect:
			r.atLeast("a", fmt.Sprintf("%s, at %d clusters: faster than the peer", l.Name, l.Fleet), want/2, l.Factor)
		}
	}
	for _, name := range []string{listMembersDirect, listLabelDirect} {
		small, large := r.list(stageSize, name), r.list(r.Conditions.Fleet, name)
		if small != nil && large != nil && large.Fleet >= largeFleet {
			r.atMost("a", fmt.Sprintf("%s: time at %d to that at %d", name, large.Fleet, small.Fleet), "x", 1.3,
				ratio(large.Median, small.Median))
		}
	}
	if len(r.Writes) >= 2 {
		r.atLeast("b", "creates per second, to the peer", 1, r.Writes[0].Factor)
	}
	for _, m := range r.Memory {
		own, what := m.rss("hub-apiserver", "hub-etcd"), m.When+": hub-apiserver with its etcd, to kube-apiserver"
		r.atMost("c", what+" alone", "", 1.0/3, ratio(own, m.rss("kube-apiserver")))
		r.atMost("c", what+" with its etcd", "", 1.0/3, ratio(own, m.rss("kube-apiserver", "etcd")))
	}
	for _, w := range r.Watches {
		if w.Name != watchPeer {
			r.atMost("d", w.Name+": p99", " ms", 100, w.P99)
			if w.Lost > 0 {
				r.reach("d", w.Name+": events lost", "none", fmt.Sprint(w.Lost), false)
			}
		}
	}
	if r.Restarts != nil {
		r.atMost("e", "start of hub-apiserver to ready, the longest", " s", 30, r.Restarts.Worst/1000)
	}
	judgeRegistration(r)
	judgeAccess(r)
	judgePlacing(r)
	judgeEdge(r)
	judgeWorks(r)
	judgeWorkAgent(r)
	judgeKlusterlets(r)
}

func (r *report) list(fleet int, name string) *listResult {
	for i := range r.Lists {
		if l := &r.Lists[i]; l.Fleet == fleet && l.Name == name {
			return l
		}
	}
	return nil
}
