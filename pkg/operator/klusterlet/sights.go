// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// moment is how long something that was told may be news: what this program writes is often told before the answer is read.
const moment = 100 * time.Millisecond

// state is what of an object decides what is done about it. The zero value is none that an object has.
type state [sha256.Size]byte

var gone = state{1}

// stateOf is that of an object, nil if it is not there. Shared objects have labels of all that share them: what is others' is no part of it.
func stateOf(id remote.ID, o metav1.Object, mark string) state {
	if o == nil {
		return gone
	}
	if !isSharedID(id) {
		return sha256.Sum256(fmt.Appendf(nil, "%q %q", o.GetUID(), o.GetResourceVersion()))
	}
	labels := o.GetLabels()
	facts := fmt.Appendf(nil, "%q %d %t", o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil)
	for _, label := range []string{mark, LabelShared, deploy.LabelManagedBy, deploy.AgentLabel, operatorv1.LabelClusterManager} {
		value, has := labels[label]
		facts = fmt.Appendf(facts, " %t %q", has, value)
	}
	return sha256.Sum256(facts)
}

// sights know what the last look at a cluster has found of all that Klusterlets want there, so that events of nothing else have one of them
// looked at again. What is kept depends on what is wanted, and not on what a cluster has or tells.
type sights struct {
	// wake has a Klusterlet looked at: atOnce times, and then once in each time.
	wake   func(name string)
	atOnce int
	each   time.Duration

	lock    sync.Mutex
	all     map[string]*sight
	wanting map[remote.ID]map[string]*sight
}

// sight is that of one Klusterlet.
type sight struct {
	mark    string
	objects map[remote.ID]*found
	// pace is how often it is woken: what changes all the time for one Klusterlet costs no other.
	pace *rate.Limiter
	// lost is that there may have been changes that were not told, looking that it is being looked at, and waits that news are about to be.
	lost, looking, waits bool
}

// found are the states of an object that a look has found last, and that was told since the look began.
type found struct{ seen, told state }

func (s *sight) hasNews() bool {
	if s.lost {
		return true
	}
	for _, f := range s.objects {
		if f.told != (state{}) && f.told != f.seen {
			return true
		}
	}
	return false
}

// begin begins a look: what was told before is covered by it.
func (s *sights) begin(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.all == nil {
		s.all, s.wanting = map[string]*sight{}, map[remote.ID]map[string]*sight{}
	}
	own := s.all[name]
	if own == nil {
		own = &sight{objects: map[remote.ID]*found{}, pace: rate.NewLimiter(rate.Every(s.each), s.atOnce)}
		s.all[name] = own
	}
	own.lost, own.looking = false, true
	for _, f := range own.objects {
		f.told = state{}
	}
}

// want says what is looked at, and with which mark if it is shared. It is to be called before the look.
func (s *sights) want(name, mark string, ids []remote.ID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.all[name]
	if own == nil {
		return
	}
	before := own.objects
	own.mark, own.objects = mark, make(map[remote.ID]*found, len(ids))
	for _, id := range ids {
		f := before[id]
		if delete(before, id); f == nil {
			f = &found{}
		}
		if own.objects[id] == nil {
			own.objects[id] = f
		}
		if s.wanting[id] == nil {
			s.wanting[id] = map[string]*sight{}
		}
		s.wanting[id][name] = own
	}
	s.unwant(name, before)
}

func (s *sights) unwant(name string, objects map[remote.ID]*found) {
	for id := range objects {
		if delete(s.wanting[id], name); len(s.wanting[id]) == 0 {
			delete(s.wanting, id)
		}
	}
}

// end ends a look. If there were news meanwhile, there is another one.
func (s *sights) end(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		own.looking = false
		s.announce(name, own)
	}
}

// drop forgets a Klusterlet.
func (s *sights) drop(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		s.unwant(name, own.objects)
		own.objects, own.lost = nil, false
		delete(s.all, name)
	}
}

// saw says what was found for a Klusterlet, or written; o is nil if it is not there.
func (s *sights) saw(name string, id remote.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil && own.objects[id] != nil {
		own.objects[id].seen = stateOf(id, o, own.mark)
	}
}

// sawForAll does so for all that want it.
func (s *sights) sawForAll(id remote.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, own := range s.wanting[id] {
		own.objects[id].seen = stateOf(id, o, own.mark)
	}
}

// tell is an event; o is nil if the object is gone. It says whether a Klusterlet wants that object.
func (s *sights) tell(id remote.ID, o metav1.Object) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.wanting[id] {
		own.objects[id].told = stateOf(id, o, own.mark)
		s.announce(name, own)
	}
	return len(s.wanting[id]) > 0
}

// lose says that there may have been changes that were not told.
func (s *sights) lose() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.all {
		own.lost = true
		s.announce(name, own)
	}
}

// hasNews says whether anything has changed since the last look began, besides what that look has found itself.
func (s *sights) hasNews(name string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.all[name]
	return own == nil || own.hasNews()
}

// announce has a Klusterlet looked at that has news, if they are so a moment later.
func (s *sights) announce(name string, own *sight) {
	if own.looking || own.waits || !own.hasNews() {
		return
	}
	own.waits = true
	time.AfterFunc(moment, func() { s.later(name, own, false) })
}

func (s *sights) later(name string, own *sight, paced bool) {
	s.lock.Lock()
	news := own.hasNews() && !own.looking
	if news && !paced {
		time.AfterFunc(own.pace.Reserve().Delay(), func() { s.later(name, own, true) })
		s.lock.Unlock()
		return
	}
	own.waits = false
	s.lock.Unlock()
	if news {
		s.wake(name)
	}
}
