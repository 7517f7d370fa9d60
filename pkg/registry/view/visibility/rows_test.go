// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// wrapped is an object like those that the cacher sends to several watches: its own metadata can be read, and it can be copied.
type wrapped struct{ *cluster.ManagedCluster }

func (wrapped) CacheEncode(runtime.Identifier, func(runtime.Object) error) error { return nil }

func (w wrapped) GetObject() runtime.Object { return w.DeepCopy() }

// rowEvent returns the event of a row, such as "+a" for one that is added to the set a, "=" for a modified row of the name, and "-b!" for a deleted
// one as it was before. Each row has the next version.
func rowEvent(text string, at int) (watch.Event, *cluster.ManagedCluster) {
	kinds := map[byte]watch.EventType{'+': watch.Added, '=': watch.Modified, '-': watch.Deleted}
	c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: fmt.Sprint(at), Labels: map[string]string{"is": "now"}}}
	if kinds[text[0]] == watch.Deleted {
		c.Labels["is"] = "before"
	}
	if set := text[1:]; set != "" {
		position.SetRow(c, set, []string{set, "z"})
	}
	return watch.Event{Type: kinds[text[0]]}, c
}

func TestRows_OfUser(t *testing.T) {
	for _, c := range []struct {
		// rows are the events of one change, in their order; those of the name are without a set.
		rows        string
		sets, names string
		// want is the event for the user, the content of its object, and its version.
		want string
	}{
		// The cluster itself changes: all of its rows have events.
		{"+", "", "c", "ADDED now 1"},
		{"+", "", "other", ""},
		{"+a +b +", "a", "", "ADDED now 3"},
		{"+a +b +", "a b", "c", "ADDED now 3"},
		{"+a +b +", "x", "", ""},
		{"=a =b =", "b", "", "MODIFIED now 3"},
		{"=a =b =", "", "c", "MODIFIED now 3"},
		{"=a =b =", "x", "other", ""},
		{"-a -b -", "a", "", "DELETED before 3"},
		{"-a -b -", "b", "c", "DELETED before 3"},
		{"-a -b -", "", "", ""},
		// It moves because of its own labels.
		{"-a +b =", "a", "", "DELETED before 3"},
		{"-a +b =", "b", "", "ADDED now 3"},
		{"-a +b =", "a b", "", "MODIFIED now 3"},
		{"-a +b =", "a", "c", "MODIFIED now 3"},
		{"-a =b =", "a b", "", "MODIFIED now 3"},
		{"+a =b =", "a b", "", "MODIFIED now 3"},
		{"-a =", "x", "", ""},
		// A selector starts or stops to match: the cacher sends this for each row.
		{"+a +b +", "a b", "", "ADDED now 3"},
		{"-a -b -", "a", "", "DELETED before 3"},
		{"+b +", "a", "", ""},
		// A set moves it, and it does not change itself: users who see it by other rows get no event.
		{"+a", "a", "", "ADDED now 1"},
		{"+a", "a", "c", ""},
		{"+a =b", "a", "", "ADDED now 2"},
		{"+a =b", "a b", "", ""},
		{"+a =b", "b", "", ""},
		{"=0 +a =b", "a", "", "ADDED now 3"},
		{"-a", "a", "", "DELETED before 1"},
		{"-a =b", "a", "", "DELETED before 2"},
		{"-a =b", "a b", "", ""},
		{"-a =b", "a", "c", ""},
		{"-a =b", "x", "other", ""},
	} {
		for _, wraps := range []bool{false, true} {
			var r rows
			visible := visibleObjects{Names: rbac.NamesOf(strings.Fields(c.sets)...), byName: rbac.NamesOf(strings.Fields(c.names)...)}
			for i, text := range strings.Fields(c.rows) {
				event, row := rowEvent(text, i+1)
				event.Object = row
				if wraps {
					event.Object = wrapped{row}
				}
				r.add(event, row, visible)
			}
			got := ""
			if event := r.event(); event != nil {
				object := event.Object.(generic.Object)
				got = fmt.Sprintf("%s %s %s", event.Type, object.GetLabels()["is"], object.GetResourceVersion())
				if _, shows := position.RowSet(object); shows || object.GetSelfLink() != "" {
					t.Errorf("%+v: shows that it is a row: %+v", c, object)
				}
			}
			if got != c.want {
				t.Errorf("%+v, wrapped %t: got %q", c, wraps, got)
			}
		}
	}
	if event := (&rows{}).event(); event != nil {
		t.Errorf("no rows are %+v", event)
	}
}

// TestSeen_CoversUnrevoked: a right by name that replaces one by set may show less.
func TestSeen_CoversUnrevoked(t *testing.T) {
	of := func(sets, names string) visibleObjects {
		names2 := func(text string) rbac.Names {
			if text == "*" {
				return rbac.Names{All: true}
			}
			return rbac.NamesOf(strings.Fields(text)...)
		}
		return visibleObjects{Names: names2(sets), byName: names2(names)}
	}
	for _, c := range []struct {
		now, before visibleObjects
		want        bool
	}{
		{of("a", "c"), of("a", "c"), true},
		{of("a b", "c"), of("a", ""), true},
		{of("a", "c"), of("a", "c d"), false},
		{of("a", "c d"), of("a b", "c"), false},
		{of("*", ""), of("a", "c"), false},
		{of("", "*"), of("a", "c"), true},
		{of("", "*"), of("*", "c"), true},
		{of("*", "c"), of("", "*"), false},
	} {
		if got := c.now.covers(c.before); got != c.want {
			t.Errorf("%+v covers %+v: %t", c.now, c.before, got)
		}
		if same := c.now.same(c.before); same && !c.want {
			t.Errorf("%+v is the same as %+v", c.now, c.before)
		}
	}
}
