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

// moment is the delay before a change counts as news: events of this program's own writes often arrive before the response is read.
const moment = 100 * time.Millisecond

// state is the part of an object on which decisions are based. No object has the zero value.
type state [sha256.Size]byte

var gone = state{1}

// stateOf returns the state of an object, or gone for nil. Shared objects have labels of all their users: those of others are not part of the state.
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

// observations records what the last reconcile observed of all objects on a cluster that Klusterlets own or share, so that events of other objects
// reconcile no Klusterlet. Its size depends on the desired objects, and not on the objects or events of a cluster.
type observations struct {
	// wake enqueues a Klusterlet: a burst of atOnce times, and then once per each.
	wake   func(name string)
	atOnce int
	each   time.Duration

	lock    sync.Mutex
	all     map[string]*observation
	wanting map[remote.ID]map[string]*observation
}

// observation has the observations of one Klusterlet.
type observation struct {
	mark    string
	objects map[remote.ID]*found
	// pace limits how often it is woken: constant changes for one Klusterlet must not delay others.
	pace *rate.Limiter
	// lost means that events may have been missed, looking that a reconcile is running, and waits that an announcement is scheduled.
	lost, running, waits bool
}

// found has the states of an object that the last reconcile observed, and that an event reported since the reconcile began.
type found struct{ seen, reported state }

func (s *observation) hasNews() bool {
	if s.lost {
		return true
	}
	for _, f := range s.objects {
		if f.reported != (state{}) && f.reported != f.seen {
			return true
		}
	}
	return false
}

// begin starts a reconcile, which covers all previous events.
func (s *observations) begin(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.all == nil {
		s.all, s.wanting = map[string]*observation{}, map[remote.ID]map[string]*observation{}
	}
	own := s.all[name]
	if own == nil {
		own = &observation{objects: map[remote.ID]*found{}, pace: rate.NewLimiter(rate.Every(s.each), s.atOnce)}
		s.all[name] = own
	}
	own.lost, own.running = false, true
	for _, f := range own.objects {
		f.reported = state{}
	}
}

// want sets the objects that are observed, and the mark of the shared ones. It must be called before they are read.
func (s *observations) want(name, mark string, ids []remote.ID) {
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
		delete(before, id)
		if f == nil {
			f = &found{}
		}
		if own.objects[id] == nil {
			own.objects[id] = f
		}
		if s.wanting[id] == nil {
			s.wanting[id] = map[string]*observation{}
		}
		s.wanting[id][name] = own
	}
	s.unwant(name, before)
}

func (s *observations) unwant(name string, objects map[remote.ID]*found) {
	for id := range objects {
		delete(s.wanting[id], name)
		if len(s.wanting[id]) == 0 {
			delete(s.wanting, id)
		}
	}
}

// end ends a reconcile. If news arrived since its start, the Klusterlet is enqueued again.
func (s *observations) end(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		own.running = false
		s.announce(name, own)
	}
}

// drop forgets a Klusterlet.
func (s *observations) drop(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		s.unwant(name, own.objects)
		own.objects, own.lost = nil, false
		delete(s.all, name)
	}
}

// saw records an object that was read or written for a Klusterlet; o is nil if it does not exist.
func (s *observations) saw(name string, id remote.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil && own.objects[id] != nil {
		own.objects[id].seen = stateOf(id, o, own.mark)
	}
}

// sawForAll records an object for all Klusterlets that observe it.
func (s *observations) sawForAll(id remote.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, own := range s.wanting[id] {
		own.objects[id].seen = stateOf(id, o, own.mark)
	}
}

// observe records an event; o is nil if the object is gone. It reports whether a Klusterlet observes that object.
func (s *observations) observe(id remote.ID, o metav1.Object) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.wanting[id] {
		own.objects[id].reported = stateOf(id, o, own.mark)
		s.announce(name, own)
	}
	return len(s.wanting[id]) > 0
}

// markLost records that events may have been missed.
func (s *observations) markLost() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.all {
		own.lost = true
		s.announce(name, own)
	}
}

// hasNews reports whether anything has changed since the last reconcile began, besides what that reconcile observed itself.
func (s *observations) hasNews(name string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.all[name]
	return own == nil || own.hasNews()
}

// announce wakes a Klusterlet that has news, if they still are news a moment later.
func (s *observations) announce(name string, own *observation) {
	if own.running || own.waits || !own.hasNews() {
		return
	}
	own.waits = true
	time.AfterFunc(moment, func() { s.later(name, own, false) })
}

func (s *observations) later(name string, own *observation, paced bool) {
	s.lock.Lock()
	news := own.hasNews() && !own.running
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
