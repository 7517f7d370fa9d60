// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// maxUnseen is the time for which a write counts more than the watches. A watch that is stale for longer, or that has restarted in between and
// never reported an object, must not leave the hub with objects that do not exist.
const maxUnseen = time.Minute

// unseen are the last writes of objects that no watch has reported yet. Until one does, its events are older: using them would repeat the write.
type unseen map[types.NamespacedName]unseenWrite

type unseenWrite struct {
	uid types.UID
	// version is empty for a deletion.
	version string
	at      time.Time
}

func (u unseen) add(obj client.Object, version string, now time.Time) {
	u[client.ObjectKeyFromObject(obj)] = unseenWrite{uid: obj.GetUID(), version: version, at: now}
}

// hides reports whether an object is older than the last write of its name. Otherwise the write counts as seen.
func (u unseen) hides(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	w, waits := u[key]
	switch {
	case !waits:
		return false
	case w.version == "" && w.uid == obj.GetUID(), w.version != "" && kit.CompareVersions(obj.GetResourceVersion(), w.version) < 0:
		return true
	}
	delete(u, key)
	return false
}

// hidesDeletion reports whether the deleted object is not that of the last write, but an earlier one.
func (u unseen) hidesDeletion(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	w, waits := u[key]
	if waits && w.uid != obj.GetUID() {
		return true
	}
	delete(u, key)
	return false
}

// due returns the time at which the first of them has been unseen for too long, or zero.
func (u unseen) due() (due time.Time) {
	for _, w := range u {
		if at := w.at.Add(maxUnseen); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}

// catchUp reads from the cache the objects whose write has been unseen for too long.
func (s *sharedScheduler) catchUp(ctx context.Context, reader client.Reader, now time.Time) {
	for key, w := range s.unseenDecisions {
		d := &clusterv1beta1.PlacementDecision{}
		if w.lasts(now) {
			continue
		}
		switch err := reader.Get(ctx, key, d); {
		case err == nil:
			delete(s.unseenDecisions, key)
			s.hub.SetDecision(d)
		case kit.IsGone(err):
			delete(s.unseenDecisions, key)
			s.hub.DeleteDecision(key)
		}
	}
	for key, w := range s.unseenPlacements {
		p := &clusterv1beta1.Placement{}
		if w.lasts(now) {
			continue
		}
		switch err := reader.Get(ctx, key, p); {
		case err == nil:
			delete(s.unseenPlacements, key)
			s.setPlacement(ctx, p)
		case kit.IsGone(err):
			delete(s.unseenPlacements, key)
			s.hub.DeletePlacement(key)
		}
	}
}

func (w unseenWrite) lasts(now time.Time) bool { return now.Before(w.at.Add(maxUnseen)) }

// learn passes a written decision to the hub, before a watch does.
func (s *sharedScheduler) learn(d *clusterv1beta1.PlacementDecision) {
	s.enqueue(func() {
		now := s.hub.Decision(client.ObjectKeyFromObject(d))
		if now != nil && now.UID == d.UID && kit.CompareVersions(now.ResourceVersion, d.ResourceVersion) >= 0 {
			return // the watch was first
		}
		s.hub.SetDecision(d)
		s.unseenDecisions.add(d, d.ResourceVersion, s.clock.Now())
	})
}

// learnDeleted does the same for a decision that does not exist any more.
func (s *sharedScheduler) learnDeleted(d *clusterv1beta1.PlacementDecision) {
	s.enqueue(func() {
		key := client.ObjectKeyFromObject(d)
		if now := s.hub.Decision(key); now == nil || now.UID != d.UID {
			return
		}
		s.hub.DeleteDecision(key)
		s.unseenDecisions.add(d, "", s.clock.Now())
	})
}

// learnPlacement does the same for a placement, unless it is gone.
func (s *sharedScheduler) learnPlacement(p *clusterv1beta1.Placement) {
	s.enqueue(func() {
		now := s.hub.Placement(client.ObjectKeyFromObject(p))
		if now == nil || now.UID != p.UID || kit.CompareVersions(now.ResourceVersion, p.ResourceVersion) >= 0 {
			return
		}
		s.hub.SetPlacement(p)
		s.unseenPlacements.add(p, p.ResourceVersion, s.clock.Now())
	})
}
