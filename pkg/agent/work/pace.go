// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The cost of condition rules is limited by delays, so that rules take a fraction of a processor only, however often objects change. A cost of 1,000
// takes about half a millisecond.
const (
	// freePause is the time that pays for a cost of 1,000 of a work that never waits: 200 a second, enough for one or two rules on an object that
	// changes every second. freeCredit is the cost that such a work may spend at once, 20,000.
	freePause, freeCredit = 5 * time.Second, 20 * freePause
	// workPause is the time that a work waits for each 1,000 above that: it takes a twentieth of a processor at most.
	workPause = 10 * time.Millisecond
	// allPause is the same for all such works together, which take a tenth of a processor and wait in turn, and for all works whose rules are
	// evaluated for the first time. allCredit is the cost that they may spend at once, 10,000,000.
	allPause, allCredit = 5 * time.Millisecond, 10_000 * allPause
	// compiling is the cost of compiling an expression, for each byte.
	compiling = 50
	// maxDear is the number of works, not known to be cheap, whose rules are evaluated concurrently: compiling the rules of one work may take a
	// minute, and the remaining workers serve the other works.
	maxDear = 2
)

// paces holds when the rules of works may be evaluated again.
type paces struct {
	now func() time.Time

	mu    sync.Mutex
	works map[string]*paced
	// dear are the works whose rules are being evaluated, and are not known to be cheap.
	dear sets.Set[string]
	// all is the time until which the cost of expensive works is paid, and first that for works that were new.
	all, first time.Time
}

// paced is the state of one work: free is the time until which its free cost is paid, and until the time until which it waits for the rest.
type paced struct{ free, until time.Time }

// begin returns how long the rules of a work must wait. If it returns 0, the caller evaluates the rules and then calls spent.
func (p *paces) begin(work string) (wait time.Duration) {
	wait = p.wait(work)
	if wait > 0 {
		return wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.works[work]; w != nil && w.until.IsZero() {
		return 0
	}
	if len(p.dear) >= maxDear {
		return minRetry
	}
	if p.dear == nil {
		p.dear = sets.New[string]()
	}
	p.dear.Insert(work)
	return 0
}

// wait returns for how long the rules of a work must not be evaluated.
func (p *paces) wait(work string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.first
	if w := p.works[work]; w != nil {
		until = w.until
	}
	return max(0, until.Sub(p.now()))
}

// recordCost records the cost of an evaluation.
func (p *paces) recordCost(work string, cost uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dear.Delete(work)
	now, w := p.now(), p.works[work]
	budget := &p.all
	if w == nil {
		if p.works == nil {
			p.works = map[string]*paced{}
		}
		w, budget = &paced{}, &p.first
		p.works[work] = w
	}
	w.free = paid(w.free, freeCredit, now).Add(price(cost, freePause))
	if !w.free.After(now) {
		w.until = time.Time{}
		return
	}
	// The rest waits its turn: what other works spent before is paid first.
	cost = min(cost, uint64(w.free.Sub(now)*1000/freePause))
	w.free = now
	*budget = paid(*budget, allCredit, now).Add(price(cost, allPause))
	w.until = now.Add(price(cost, workPause))
	if budget.After(w.until) {
		w.until = *budget
	}
}

// paid returns the given time, but no earlier than the credit allows.
func paid(until time.Time, credit time.Duration, now time.Time) time.Time {
	if oldest := now.Add(-credit); until.Before(oldest) {
		return oldest
	}
	return until
}

func price(cost uint64, each time.Duration) time.Duration { return time.Duration(cost) * each / 1000 }

// forget drops works that no longer exist, once they have paid: a work that is created again waits as before.
func (p *paces) forget(there func(work string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for work, w := range p.works {
		if !there(work) && !w.until.After(now) && !w.free.After(now.Add(-freeCredit)) {
			delete(p.works, work)
		}
	}
}
