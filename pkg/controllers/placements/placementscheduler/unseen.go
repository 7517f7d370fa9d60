// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// longestUnseen is how long a write counts more than what watches tell. A watch that is behind for longer, or has never told of an
// object since it began anew in between, must not make the hub believe in what is not there.
const longestUnseen = time.Minute

// unseen are the last writes of objects that no watch has told of yet. Until one does, what it tells is older: to believe it would be
// to write a second time.
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

// hides says that an object is older than the last write of one of its name. Else the write is seen.
func (u unseen) hides(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	w, waits := u[key]
	switch {
	case !waits:
		return false
	case w.version == "" && w.uid == obj.GetUID(), w.version != "" && isOlder(obj.GetResourceVersion(), w.version):
		return true
	}
	delete(u, key)
	return false
}

// hidesDeletion says that it is not the object of the last write that is gone, but one before.
func (u unseen) hidesDeletion(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	w, waits := u[key]
	if waits && w.uid != obj.GetUID() {
		return true
	}
	delete(u, key)
	return false
}

// due is when the first of them has been unseen for too long, if there are any.
func (u unseen) due() (due time.Time) {
	for _, w := range u {
		if at := w.at.Add(longestUnseen); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}

// isOlder says so of versions that can be compared.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// catchUp takes what the cache has for what there is, where a write has been unseen for too long.
func (r *Reconciler) catchUp(ctx context.Context, now time.Time) {
	for key, w := range r.unseenDecisions {
		d := &clusterv1beta1.PlacementDecision{}
		if w.lasts(now) {
			continue
		}
		switch err := r.client.Get(ctx, key, d); {
		case err == nil:
			delete(r.unseenDecisions, key)
			r.hub.SetDecision(d)
		case kit.IsGone(err):
			delete(r.unseenDecisions, key)
			r.hub.DeleteDecision(key)
		}
	}
	for key, w := range r.unseenPlacements {
		p := &clusterv1beta1.Placement{}
		if w.lasts(now) {
			continue
		}
		switch err := r.client.Get(ctx, key, p); {
		case err == nil:
			delete(r.unseenPlacements, key)
			r.setPlacement(ctx, p)
		case kit.IsGone(err):
			delete(r.unseenPlacements, key)
			r.hub.DeletePlacement(key)
		}
	}
}

func (w unseenWrite) lasts(now time.Time) bool { return now.Before(w.at.Add(longestUnseen)) }

// learn tells the hub of a decision that was written, before a watch does.
func (r *Reconciler) learn(d *clusterv1beta1.PlacementDecision) {
	r.hear(func() {
		now := r.hub.Decision(client.ObjectKeyFromObject(d))
		if now != nil && now.UID == d.UID && !isOlder(now.ResourceVersion, d.ResourceVersion) {
			return // the watch was first
		}
		r.hub.SetDecision(d)
		r.unseenDecisions.add(d, d.ResourceVersion, r.clock.Now())
	})
}

// learnGone does the same for one that is not there any more.
func (r *Reconciler) learnGone(d *clusterv1beta1.PlacementDecision) {
	r.hear(func() {
		key := client.ObjectKeyFromObject(d)
		if now := r.hub.Decision(key); now == nil || now.UID != d.UID {
			return
		}
		r.hub.DeleteDecision(key)
		r.unseenDecisions.add(d, "", r.clock.Now())
	})
}

// learnPlacement does the same for a placement, unless it has gone meanwhile.
func (r *Reconciler) learnPlacement(p *clusterv1beta1.Placement) {
	r.hear(func() {
		now := r.hub.Placement(client.ObjectKeyFromObject(p))
		if now == nil || now.UID != p.UID || !isOlder(now.ResourceVersion, p.ResourceVersion) {
			return
		}
		r.hub.SetPlacement(p)
		r.unseenPlacements.add(p, p.ResourceVersion, r.clock.Now())
	})
}
