// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// placementPause is the pause of a placement for each 1,000 of the CEL cost of its last run, which takes about half a millisecond. So no
	// placement takes more than a twentieth of a processor, whatever its expressions and however often things change.
	placementPause = 10 * time.Millisecond
	// namespacePause is the same for all placements of a namespace, which take at most a tenth together. A namespace that has caused no cost for a
	// while has credit: a cost of up to 10,000,000 at once delays none of its placements.
	namespacePause  = 5 * time.Millisecond
	namespaceCredit = 10_000 * namespacePause
)

func pause(cost uint64, each time.Duration) time.Duration { return time.Duration(cost/1000) * each }

// spending is the time at which each namespace has paid for its CEL cost. It is in the past as long as there is credit.
type spending map[string]time.Time

func (s spending) add(namespace string, cost uint64, now time.Time) {
	if cost > 0 {
		// Questions are cheap, and many.
		s[namespace] = later(s[namespace], now.Add(-namespaceCredit)).Add(time.Duration(cost) * namespacePause / 1000)
	}
}

// forget drops the namespaces that have their full credit again.
func (s spending) forget(now time.Time) {
	for namespace, until := range s {
		if !until.After(now.Add(-namespaceCredit)) {
			delete(s, namespace)
		}
	}
}

// notBefore returns the time before which a placement is not run. One without CEL never waits, not even for expressions that it had before.
func (h *Scheduler) notBefore(key types.NamespacedName, s *scheduled) time.Time {
	if !s.program.HasCEL() {
		return time.Time{}
	}
	return later(s.paused, h.spent[key.Namespace])
}

// asked returns whether a change affects a placement, by a question that may cost CEL, too. While the placement pauses, the question is not
// evaluated: the placement will be run anyway.
func (h *Scheduler) asked(key types.NamespacedName, s *scheduled, now time.Time, question func() (yes bool, cost uint64)) bool {
	if now.Before(h.notBefore(key, s)) {
		return true
	}
	yes, cost := question()
	h.spent.add(key.Namespace, cost, now)
	return yes
}
