// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// rows has the events of one change for the rows of one object, which arrive one after the other. If a row of an object has an event, all rows that
// it had or has get one, but that of its name only if the object itself has changed, and then as the last. So these events alone determine what a
// user could and can see, wherever a watch starts.
type rows struct {
	name string
	// before and after report whether the user could see the object before, and can see it after.
	before, after bool
	// named is the event of the row of the name. gained and lost are rows of sets that make the object visible to the user, or do not any more.
	named        watch.Event
	gained, lost watch.Event
	// byName reports whether the user may see the object by its name.
	byName bool
	// version is the version of the last row.
	version string
}

// add adds the event of a row.
func (r *rows) add(event watch.Event, row metav1.Object, visible visibleObjects) {
	r.name, r.version, r.byName = row.GetName(), row.GetResourceVersion(), visible.byName.Has(row.GetName())
	set, ofSet := position.RowSet(row)
	sees := r.byName
	if ofSet {
		sees = visible.Has(set)
	} else {
		r.named = event
	}
	if !sees {
		return
	}
	was, is := event.Type != watch.Added, event.Type != watch.Deleted
	r.before, r.after = r.before || was, r.after || is
	switch {
	case ofSet && !was:
		r.gained = event
	case ofSet && !is:
		r.lost = event
	}
}

// event returns the event for the user, or nil for none. It has the version of the last row: a client that resumes with it has received all of them.
func (r *rows) event() *watch.Event {
	hasChanged := r.named.Object != nil
	before, after := r.before, r.after
	if !hasChanged && r.byName {
		return nil // It has moved between sets, and is visible without them.
	}
	switch {
	case before && after && hasChanged:
		return &watch.Event{Type: watch.Modified, Object: r.named.Object}
	case after && !before && hasChanged:
		return &watch.Event{Type: watch.Added, Object: r.named.Object}
	case after && !before:
		return &watch.Event{Type: watch.Added, Object: r.shown(r.gained)}
	case before && !after && r.named.Type == watch.Deleted:
		return &watch.Event{Type: watch.Deleted, Object: r.named.Object}
	case before && !after:
		// As the user last saw it.
		return &watch.Event{Type: watch.Deleted, Object: r.shown(r.lost)}
	}
	return nil
}

// shown returns the object of a row.
func (r *rows) shown(row watch.Event) runtime.Object {
	object := row.Object
	if wrapped, ok := object.(runtime.CacheableObject); ok {
		object = wrapped.GetObject()
	} else {
		object = object.DeepCopyObject()
	}
	plain := object.(generic.Object)
	position.Plain(plain)
	plain.SetResourceVersion(r.version)
	return plain
}

// flush sends the event for the rows of one object.
func (f *filter) flush(ctx context.Context) bool {
	event := f.moving.event()
	f.moving = rows{}
	return event == nil || f.send(ctx, *event)
}
