// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package workevents

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
)

// Events are written at once up to a burst, and so many in a second in the long run: for each cluster, and for all. Those above are left
// out.
const (
	clusterPerSecond, clusterAtOnce = 1. / 60, 25
	perSecond, atOnce               = 1, 200
	// mostClusters is for how many clusters is remembered what they have used. Of more, those that had an event last count.
	mostClusters = 16_384
)

// teller makes events of what becomes of works.
type teller struct{ recorder events.EventRecorder }

func newTeller(recorder events.EventRecorder, clock clock.PassiveClock) *teller {
	return &teller{&bounded{
		EventRecorder: recorder,
		cluster: record.NewEventSourceObjectSpamFilter(mostClusters, clusterAtOnce, clusterPerSecond, clock,
			func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
		all: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, atOnce, clock),
	}}
}

// tell makes an event of a work that cannot be applied any more, or can be again. What is made of a set or of an edge placement are as many
// works as clusters: these have conditions that count them.
func (t *teller) tell(c kit.Change[*workv1.ManifestWork]) {
	if c.After == nil || c.Known || manifestworkreplicaset.IsOfReplicaSet(c.After.Labels) || c.After.Labels[edgev1alpha1.PlacementHashLabel] != "" {
		return
	}
	var before []metav1.Condition
	if c.Before != nil {
		before = c.Before.Status.Conditions
	}
	// Available is no event: it is False with each work that is not applied, for a while with each that is new, and as long as a rule says.
	conditionevents.RecordFault(t.recorder, c.After, before, c.After.Status.Conditions, workv1.WorkApplied, "Apply")
	conditionevents.RecordFault(t.recorder, c.After, before, c.After.Status.Conditions, workv1.WorkContested, "Apply")
}

// bounded leaves out what is too much. The agent of a cluster writes the conditions of its works, as often as it likes: the bound of its
// cluster comes first, so that it leaves room to others.
type bounded struct {
	events.EventRecorder
	cluster *record.EventSourceObjectSpamFilter
	all     flowcontrol.PassiveRateLimiter
}

// Eventf implements events.EventRecorder.
func (b *bounded) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	about := corev1.ObjectReference{Namespace: regarding.(*workv1.ManifestWork).Namespace}
	if b.cluster.Filter(&corev1.Event{InvolvedObject: about}) || !b.all.TryAccept() {
		return
	}
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}
