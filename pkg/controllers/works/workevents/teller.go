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
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// The rates and bursts of events: for each cluster, and for all together. Events beyond them are dropped.
const (
	clusterPerSecond, clusterAtOnce = 1. / 60, 25
	perSecond, atOnce               = 1, 200
	// maxClusters is the number of clusters whose use of the limit is remembered. If there are more, it is those with the most recent events.
	maxClusters = 16_384
)

// teller records events about works.
type teller struct{ recorder events.EventRecorder }

func newTeller(recorder events.EventRecorder, clock clock.PassiveClock) *teller {
	return &teller{&bounded{
		EventRecorder: recorder,
		cluster: record.NewEventSourceObjectSpamFilter(maxClusters, clusterAtOnce, clusterPerSecond, clock,
			func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
		all: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, atOnce, clock),
	}}
}

// record records an event for a work that cannot be applied any more, or can be again. It skips works of a set or an edge placement: there is one for
// each cluster, and the owner has conditions that count them.
func (t *teller) record(c kit.Change[*workv1.ManifestWork]) {
	if c.After == nil || c.Known || manifestworkreplicaset.IsOfReplicaSet(c.After.Labels) || c.After.Labels[edgev1alpha1.PlacementHashLabel] != "" {
		return
	}
	var before []metav1.Condition
	if c.Before != nil {
		before = c.Before.Status.Conditions
	}
	// Available is not worth an event: it is False for each work that is not applied, for a while for each new one, and for as long as a rule says.
	conditionevents.RecordFault(t.recorder, c.After, before, c.After.Status.Conditions, workv1.WorkApplied, "Apply")
	conditionevents.RecordFault(t.recorder, c.After, before, c.After.Status.Conditions, workv1.WorkContested, "Apply")
}

// bounded drops events beyond the limits. The agent of a cluster writes the conditions of its works as often as it likes: the limit of its cluster
// comes first, so that events of others are not dropped.
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
