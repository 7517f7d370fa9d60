// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/record"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func set(name string, selects cluster.ManagedClusterSelector) cluster.ManagedClusterSet {
	return cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cluster.ManagedClusterSetSpec{ClusterSelector: selects}}
}

func byLabels(matches map[string]string) cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: matches}}
}

// fleet returns four sets: two with their own label, one of all clusters and one of those in production.
func fleet(context.Context) ([]cluster.ManagedClusterSet, error) {
	return []cluster.ManagedClusterSet{set("payments", cluster.ManagedClusterSelector{}), set("default", cluster.ManagedClusterSelector{}),
		set("global", byLabels(nil)), set("production", byLabels(map[string]string{"env": "prod"})),
		set("broken", cluster.ManagedClusterSelector{SelectorType: "unknown"})}, nil
}

func newCluster(all labels.Set) *cluster.ManagedCluster {
	return &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid", Labels: all}}
}

// told returns the events of writes, which are processed one after the other.
func told(t *testing.T, r *Reporter) []string {
	t.Helper()
	recorder := record.NewFakeRecorder(2 * burst)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx, recorder) }()
	r.queue <- recordedChange{who: "the test", note: "is done"}
	var events []string
	for event := range recorder.Events {
		if strings.Contains(event, `user "the test" is done`) {
			break
		}
		events = append(events, event)
	}
	cancel()
	<-done
	return events
}

func as(t *testing.T, name string) context.Context {
	return request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
}

func TestUpdated(t *testing.T) {
	payments := labels.Set{cluster.ClusterSetLabel: "payments"}
	for name, test := range map[string]struct {
		old, updated runtime.Object
		want         []string
	}{
		"into a set, out of another": {newCluster(labels.Set{cluster.ClusterSetLabel: "default"}), newCluster(payments),
			[]string{`Normal ClusterSetsChanged user "dana" took it out of set default and put it into set payments`}},
		"into one more": {newCluster(payments), newCluster(labels.Set{cluster.ClusterSetLabel: "payments", "env": "prod"}),
			[]string{`Normal ClusterSetsChanged user "dana" put it into set production`}},
		"out of two": {newCluster(labels.Set{cluster.ClusterSetLabel: "payments", "env": "prod"}), newCluster(nil),
			[]string{`Normal ClusterSetsChanged user "dana" took it out of sets payments, production`}},
		"a label that no set selects by": {newCluster(payments), newCluster(labels.Set{cluster.ClusterSetLabel: "payments", "team": "a"}), nil},
		"the same labels":                {newCluster(payments), newCluster(payments), nil},
		"what a set selects": {new(set("production", byLabels(map[string]string{"env": "prod"}))), new(set("production", byLabels(nil))),
			[]string{`Normal ClusterSelectorChanged user "dana" changed what the set selects from "env=prod" to ""`}},
		"another part of a set": {new(set("production", byLabels(nil))), &cluster.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: "production", Labels: labels.Set{"a": "b"}},
			Spec:       cluster.ManagedClusterSetSpec{ClusterSelector: byLabels(nil)}}, nil},
		"another kind": {&cluster.ManagedClusterSetBinding{}, &cluster.ManagedClusterSetBinding{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(nil, fleet)
			r.Updated(as(t, "dana"), test.updated, test.old)
			if got := told(t, r); !slices.Equal(got, test.want) {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}

// TestUpdated_UserTextIsQuoted verifies that text that users choose is quoted and limited.
func TestUpdated_UserTextIsQuoted(t *testing.T) {
	r := New(nil, func(context.Context) (all []cluster.ManagedClusterSet, err error) {
		for i := range 1000 {
			all = append(all, set(fmt.Sprintf("set-%04d", i), byLabels(map[string]string{"env": "prod"})))
		}
		return all, nil
	})
	r.Updated(as(t, "\x1b[2J"+strings.Repeat("é", 5000)), newCluster(labels.Set{"env": "prod"}), newCluster(nil))
	got := told(t, r)
	if len(got) != 1 || len(got[0]) > 1024 || strings.Contains(got[0], "\x1b") || !strings.HasSuffix(got[0], "set-0007 and 992 more") {
		t.Errorf("told %q", got)
	}
}

// TestUpdated_FloodOfChanges verifies that writers do not wait for events, and that a flood of changes does not cause a flood of events.
func TestUpdated_FloodOfChanges(t *testing.T) {
	r := New(nil, fleet)
	for range 10 * burst {
		r.Updated(as(t, "dana"), newCluster(labels.Set{"env": "prod"}), newCluster(nil))
	}
	if waiting := len(r.queue); waiting > burst {
		t.Errorf("%d changes wait", waiting)
	}
	<-r.queue // for the test's own change
	if got := len(told(t, r)); got == 0 || got > burst {
		t.Errorf("%d events", got)
	}
}

func TestRun_WithoutSets(t *testing.T) {
	r := New(nil, func(context.Context) ([]cluster.ManagedClusterSet, error) { return nil, errors.New("away") })
	r.Updated(as(t, "dana"), newCluster(labels.Set{"env": "prod"}), newCluster(nil))
	if got := told(t, r); len(got) != 0 {
		t.Errorf("told %q", got)
	}
}
