// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// placementPause is how long a placement pauses for each 1,000 of what the CEL of its last run has cost, which takes about half a
	// millisecond. So no placement takes more than a twentieth of a processor, whatever its expressions and however often things change.
	placementPause = 10 * time.Millisecond
	// namespacePause is the same for all placements of a namespace, which take a tenth at most, however many they are. A namespace that
	// has cost nothing for a while has credit: what its placements cost at once, up to 10,000,000, makes none of them wait.
	namespacePause  = 5 * time.Millisecond
	namespaceCredit = 10_000 * namespacePause
)

func pause(cost uint64, each time.Duration) time.Duration { return time.Duration(cost/1000) * each }

// spending is until when each namespace has used up what its CEL may cost. It is in the past as long as there is credit.
type spending map[string]time.Time

func (s spending) add(namespace string, cost uint64, now time.Time) {
	if cost > 0 {
		// Questions are cheap, and many.
		s[namespace] = later(s[namespace], now.Add(-namespaceCredit)).Add(time.Duration(cost) * namespacePause / 1000)
	}
}

// forget drops the namespaces that have all of their credit again.
func (s spending) forget(now time.Time) {
	for namespace, until := range s {
		if !until.After(now.Add(-namespaceCredit)) {
			delete(s, namespace)
		}
	}
}

// notBefore is until when a placement is not run. One without CEL waits for nothing, also not for expressions that it has had.
func (h *Hub) notBefore(key types.NamespacedName, s *scheduled) time.Time {
	if !s.program.hasCEL() {
		return time.Time{}
	}
	return later(s.paused, h.spent[key.Namespace])
}

// asked is the answer to the question whether a change concerns a placement, which may cost CEL, too. While the placement pauses, it is
// not asked: it will be run anyway.
func (h *Hub) asked(key types.NamespacedName, s *scheduled, now time.Time, question func() (yes bool, cost uint64)) bool {
	if now.Before(h.notBefore(key, s)) {
		return true
	}
	yes, cost := question()
	h.spent.add(key.Namespace, cost, now)
	return yes
}
