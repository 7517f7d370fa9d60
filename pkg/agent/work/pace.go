// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What condition rules cost is paid with time, so that they take a part of a processor only, however often objects change. 1,000 of cost
// takes about half a millisecond.
const (
	// freePause is what a work may spend while it never waits, as time for each 1,000: 200 a second, enough for a rule or two on an object
	// that changes every second. freeCredit is what it may spend at once, 20,000.
	freePause, freeCredit = 5 * time.Second, 20 * freePause
	// workPause is how long a work waits that has spent more: it takes a twentieth of a processor at most.
	workPause = 10 * time.Millisecond
	// allPause is the same for all such works, which take a tenth together and wait in turn, and for all works whose rules are evaluated for
	// the first time. allCredit is what they may spend at once, 10,000,000.
	allPause, allCredit = 5 * time.Millisecond, 10_000 * allPause
	// compiling is what each byte of an expression costs that is compiled.
	compiling = 50
	// mostDear is at how many rules of works that are not known to be cheap the agent looks at a time: to compile what one work has may take a
	// minute, and the other workers are for the other works.
	mostDear = 2
)

// paces are when the rules of works may be evaluated again.
type paces struct {
	now func() time.Time

	mu    sync.Mutex
	works map[string]*paced
	// dear are the works whose rules are evaluated just now, and not known to be cheap.
	dear sets.Set[string]
	// all and first are until when it is paid what works have spent that spend much, and works that were new.
	all, first time.Time
}

// paced is one work: until when it is paid what it may spend freely, and what it has spent beyond that.
type paced struct{ free, until time.Time }

// begin says that the rules of a work are about to be evaluated, unless they have to wait. After that, spent is to be called.
func (p *paces) begin(work string) (wait time.Duration) {
	if wait = p.wait(work); wait > 0 {
		return wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.works[work]; w != nil && w.until.IsZero() {
		return 0
	}
	if len(p.dear) >= mostDear {
		return shortestRetry
	}
	if p.dear == nil {
		p.dear = sets.New[string]()
	}
	p.dear.Insert(work)
	return 0
}

// wait is how long the rules of a work are not evaluated.
func (p *paces) wait(work string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.first
	if w := p.works[work]; w != nil {
		until = w.until
	}
	return max(0, until.Sub(p.now()))
}

// spent notes what an evaluation has cost.
func (p *paces) spent(work string, cost uint64) {
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
	// The rest waits for its turn: what others have spent before is paid first.
	cost = min(cost, uint64(w.free.Sub(now)*1000/freePause))
	w.free = now
	*budget = paid(*budget, allCredit, now).Add(price(cost, allPause))
	w.until = now.Add(price(cost, workPause))
	if budget.After(w.until) {
		w.until = *budget
	}
}

// paid is a time no longer ago than there is credit.
func paid(until time.Time, credit time.Duration, now time.Time) time.Time {
	if oldest := now.Add(-credit); until.Before(oldest) {
		return oldest
	}
	return until
}

func price(cost uint64, each time.Duration) time.Duration { return time.Duration(cost) * each / 1000 }

// forget drops works that are not there any more, once they have paid: who makes a work anew waits as before.
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
