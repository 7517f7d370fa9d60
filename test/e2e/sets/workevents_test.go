// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// told is a namespace of a cluster with works, whose agent is the test.
type told struct {
	*testing.T
	namespace string
}

func newTold(t *testing.T) *told { return &told{t, harness.NewNamespace(t)} }

func (o *told) make(name string, labels map[string]string) {
	o.Helper()
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`),
	}}}
	harness.Must(harness.Admin(o.T).WorkV1().ManifestWorks(o.namespace).Create(o.Context(), w, metav1.CreateOptions{}))(o.T)
}

// say writes the condition Applied of a work.
func (o *told) say(name string, status metav1.ConditionStatus, reason, message string) {
	o.Helper()
	works := harness.Admin(o.T).WorkV1().ManifestWorks(o.namespace)
	w := harness.Must(works.Get(o.Context(), name, metav1.GetOptions{}))(o.T)
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1.WorkApplied, Status: status, Reason: reason, Message: message})
	harness.Must(works.UpdateStatus(o.Context(), w, metav1.UpdateOptions{}))(o.T)
}

// await waits until enough returns true for the events in the namespace, and returns them.
func (o *told) await(what string, enough func([]eventsv1.Event) bool) (all []eventsv1.Event) {
	o.Helper()
	harness.Eventually(o.T, what, func(ctx context.Context) (bool, error) {
		list, err := harness.Kube(o.T, harness.Hub(o.T).AdminConfig()).EventsV1().Events(o.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		all = list.Items
		return harness.Holds(enough(all), fmt.Sprintf("%d events: %.2000v", len(all), all))
	})
	return all
}

// awaitOf waits for an event about a work.
func (o *told) awaitOf(name, kind, reason, note string) {
	o.Helper()
	o.await(kind+" "+reason, func(all []eventsv1.Event) bool {
		return slices.ContainsFunc(all, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "ManifestWork" && e.Regarding.Name == name && e.Type == kind && e.Reason == reason && e.Note == note
		})
	})
}

// awaitFollowed waits until hub-controller-manager records events for changes: the state when it starts is no change.
func awaitFollowed(t *testing.T) {
	t.Helper()
	probe, last := newTold(t), time.Time{}
	probe.make("web", nil)
	probe.await("hub-controller-manager follows works", func(all []eventsv1.Event) bool {
		if len(all) == 0 && time.Since(last) > time.Second {
			last = time.Now()
			probe.say("web", metav1.ConditionFalse, "Failed", "")
			probe.say("web", metav1.ConditionTrue, "Complete", "")
		}
		return len(all) > 0
	})
}

// TestWorkEvents_AreRateLimited verifies this for an agent that flips the status of a work as fast as it can write.
func TestWorkEvents_AreRateLimited(t *testing.T) {
	awaitFollowed(t)
	const flips, atOnce = 60, 25
	start, one, other := time.Now(), newTold(t), newTold(t)
	one.make("web", nil)
	one.make("of-set", map[string]string{work.ReplicaSetLabel: "team.web"})
	one.say("web", metav1.ConditionTrue, "First", "for the first time")
	one.say("web", metav1.ConditionFalse, "Failed", "one of two")
	one.awaitOf("web", "Warning", "Failed", "one of two")
	one.say("web", metav1.ConditionTrue, "Complete", "both")
	one.awaitOf("web", "Normal", "Complete", "both")

	one.say("of-set", metav1.ConditionFalse, "OfSet", "a set tells of its works itself")
	for i := range flips {
		// The flips continue as long as the hub accepts them. Each event is distinct, and no repetition.
		one.say("web", metav1.ConditionFalse, fmt.Sprintf("Flip%d%s", i, strings.Repeat("x", 1000)), strings.Repeat("m", 32_000))
		one.say("web", metav1.ConditionTrue, fmt.Sprintf("Flop%d", i), "")
	}

	// The hub records a later change of a different cluster, which shows that all previous changes were processed.
	other.make("web", nil)
	other.say("web", metav1.ConditionFalse, "Failed", "of another cluster")
	other.awaitOf("web", "Warning", "Failed", "of another cluster")
	all := one.await("what fits into the bound", func(all []eventsv1.Event) bool { return len(all) >= atOnce })
	if most := atOnce + 1 + int(time.Since(start)/time.Minute); len(all) > most {
		t.Errorf("%d events of %d flips, want %d at most", len(all), flips, most)
	}
	for _, e := range all {
		if e.Regarding.Name != "web" || e.Reason == "First" {
			t.Errorf("there is %s %s of %s", e.Type, e.Reason, e.Regarding.Name)
		}
	}
}
