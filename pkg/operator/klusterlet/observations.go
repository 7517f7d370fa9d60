// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// eventDelay is the delay before a change counts: events of this program's own writes often arrive before the response is read.
const eventDelay = 100 * time.Millisecond

// state is the part of an object on which decisions are based. No object has the zero value.
type state [sha256.Size]byte

var gone = state{1}

// stateOf returns the state of an object, or gone for nil. Shared objects have labels of all their users: those of others are not part of the state.
func stateOf(id apply.ID, o metav1.Object, mark string) state {
	if o == nil {
		return gone
	}
	if !plan.IsSharedID(id) {
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
	// enqueue enqueues a Klusterlet: at most burst times at once, and then once per interval.
	enqueue  func(name string)
	burst    int
	interval time.Duration

	lock sync.Mutex
	all  map[string]*observation
	// trackers has the observations of the Klusterlets that track an object.
	trackers map[apply.ID]map[string]*observation
}

// observation has the observations of one Klusterlet.
type observation struct {
	mark    string
	objects map[apply.ID]*objectState
	// pace limits how often it is enqueued: constant changes for one Klusterlet must not delay others.
	pace *rate.Limiter
	// lost means that events may have been missed, running that a reconcile is running, and scheduled that the Klusterlet is enqueued soon.
	lost, running, scheduled bool
}

// objectState has the states of an object that the last reconcile observed, and that an event reported since the reconcile began.
type objectState struct{ observed, reported state }

// isStale reports whether an event reported a state that the last reconcile has not observed, or may have been missed.
func (s *observation) isStale() bool {
	if s.lost {
		return true
	}
	for _, f := range s.objects {
		if f.reported != (state{}) && f.reported != f.observed {
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
		s.all, s.trackers = map[string]*observation{}, map[apply.ID]map[string]*observation{}
	}
	own := s.all[name]
	if own == nil {
		own = &observation{objects: map[apply.ID]*objectState{}, pace: rate.NewLimiter(rate.Every(s.interval), s.burst)}
		s.all[name] = own
	}
	own.lost, own.running = false, true
	for _, f := range own.objects {
		f.reported = state{}
	}
}

// track sets the objects of a Klusterlet that are observed, and the mark of the shared ones. It must be called before they are read.
func (s *observations) track(name, mark string, ids []apply.ID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.all[name]
	if own == nil {
		return
	}
	before := own.objects
	own.mark, own.objects = mark, make(map[apply.ID]*objectState, len(ids))
	for _, id := range ids {
		f := before[id]
		delete(before, id)
		if f == nil {
			f = &objectState{}
		}
		if own.objects[id] == nil {
			own.objects[id] = f
		}
		if s.trackers[id] == nil {
			s.trackers[id] = map[string]*observation{}
		}
		s.trackers[id][name] = own
	}
	s.untrack(name, before)
}

func (s *observations) untrack(name string, objects map[apply.ID]*objectState) {
	for id := range objects {
		delete(s.trackers[id], name)
		if len(s.trackers[id]) == 0 {
			delete(s.trackers, id)
		}
	}
}

// end ends a reconcile. If an event reported a change since its start, the Klusterlet is enqueued again.
func (s *observations) end(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		own.running = false
		s.schedule(name, own)
	}
}

// drop forgets a Klusterlet.
func (s *observations) drop(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil {
		s.untrack(name, own.objects)
		own.objects, own.lost = nil, false
		delete(s.all, name)
	}
}

// record records an object that was read or written for a Klusterlet; o is nil if it does not exist.
func (s *observations) record(name string, id apply.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if own := s.all[name]; own != nil && own.objects[id] != nil {
		own.objects[id].observed = stateOf(id, o, own.mark)
	}
}

// recordForAll records an object for all Klusterlets that track it.
func (s *observations) recordForAll(id apply.ID, o metav1.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, own := range s.trackers[id] {
		own.objects[id].observed = stateOf(id, o, own.mark)
	}
}

// observe records an event; o is nil if the object is gone. It reports whether a Klusterlet tracks that object.
func (s *observations) observe(id apply.ID, o metav1.Object) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.trackers[id] {
		own.objects[id].reported = stateOf(id, o, own.mark)
		s.schedule(name, own)
	}
	return len(s.trackers[id]) > 0
}

// markLost records that events may have been missed.
func (s *observations) markLost() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, own := range s.all {
		own.lost = true
		s.schedule(name, own)
	}
}

// isStale reports whether anything has changed since the last reconcile began, besides what that reconcile observed itself.
func (s *observations) isStale(name string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.all[name]
	return own == nil || own.isStale()
}

// schedule enqueues a stale Klusterlet after a delay, if it still is stale then.
func (s *observations) schedule(name string, own *observation) {
	if own.running || own.scheduled || !own.isStale() {
		return
	}
	own.scheduled = true
	time.AfterFunc(eventDelay, func() { s.enqueueLater(name, own, false) })
}

func (s *observations) enqueueLater(name string, own *observation, paced bool) {
	s.lock.Lock()
	stale := own.isStale() && !own.running
	if stale && !paced {
		time.AfterFunc(own.pace.Reserve().Delay(), func() { s.enqueueLater(name, own, true) })
		s.lock.Unlock()
		return
	}
	own.scheduled = false
	s.lock.Unlock()
	if stale {
		s.enqueue(name)
	}
}

// recordingClient is a client that records the objects that are read and written. Use it for objects on which decisions are based: an object that is
// read for display only must not count as reconciled.
type recordingClient struct {
	client.Client
	record func(id apply.ID, o metav1.Object)
}

// Get implements client.Reader.
func (c recordingClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, options...)
	switch {
	case err == nil:
		c.record(apply.IDOf(o), o)
	case apierrors.IsNotFound(err):
		c.record(apply.ID{GroupKind: apply.IDOf(o).GroupKind, NamespacedName: key}, nil)
	}
	return err
}

// Apply implements client.Writer.
func (c recordingClient) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	err := c.Client.Apply(ctx, applied, options...)
	if o, ok := applied.(client.Object); ok && err == nil { // the response is decoded into it
		c.record(apply.IDOf(o), o)
	}
	return err
}

// Create implements client.Writer.
func (c recordingClient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	err := c.Client.Create(ctx, o, options...)
	if err == nil {
		c.record(apply.IDOf(o), o)
	}
	return err
}

// Update implements client.Writer.
func (c recordingClient) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	err := c.Client.Update(ctx, o, options...)
	if err == nil {
		c.record(apply.IDOf(o), o)
	}
	return err
}
