// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
)

// news reports whether there is any.
func news(v *hub.View) bool {
	select {
	case <-v.News():
		return true
	default:
		return false
	}
}

func asked(v *hub.View) []string {
	select {
	case names := <-v.RequestedNamespaces():
		return names
	default:
		return []string{"nobody has asked"}
	}
}

func TestView_LastRequestOfSessionCounts(t *testing.T) {
	v := hub.NewView(0)
	v.RequestNamespaces([]string{"a"})
	v.RequestNamespaces([]string{"a", "b"})
	if got := asked(v); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
	v.RequestNamespaces(nil)
	if got := asked(v); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	v.RequestNamespaces([]string{"a"})
	v.ReportNamespaces(map[string]error{"a": nil})
	v.Begin()
	if got := asked(v); got[0] != "nobody has asked" || len(v.Namespaces()) > 0 {
		t.Errorf("of a session before there is left: %v, %v", got, v.Namespaces())
	}
}

func TestView_NotifiesOnlyOfChanges(t *testing.T) {
	v := hub.NewView(0)
	for i, c := range []struct {
		results map[string]error
		want    bool
	}{
		{map[string]error{"a": nil}, true}, {map[string]error{"a": nil}, false}, {map[string]error{"a": errors.New("x")}, true},
		{map[string]error{"a": errors.New("y")}, false}, {map[string]error{"a": nil}, true}, {map[string]error{"a": nil, "b": nil}, true},
		{map[string]error{}, true}, {nil, false},
	} {
		v.ReportNamespaces(c.results)
		if news(v) != c.want {
			t.Errorf("%d: %v is news: %t", i, c.results, !c.want)
		}
	}
	v.Report(metav1.Condition{Type: "A"})
	v.Report(metav1.Condition{Type: "A", Reason: "R"})
	if got := v.Reported(); !news(v) || news(v) || len(got) != 1 || got[0].Reason != "R" {
		t.Errorf("reported is %v", got)
	}
}

func TestView_IntervalFollowsLease(t *testing.T) {
	v := hub.NewView(0)
	for _, c := range []struct {
		seconds int32
		want    time.Duration
	}{{0, time.Minute}, {20, 20 * time.Second}, {0, 20 * time.Second}, {-1, 20 * time.Second}} {
		v.SetLease(c.seconds)
		if v.Interval() != c.want {
			t.Errorf("after %d the interval is %s", c.seconds, v.Interval())
		}
	}
}
