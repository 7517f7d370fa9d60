// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package moves records events about users who move a cluster between sets by its labels, or change what a set selects. Controllers observe the
// change, and not its user.
package moves

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

const (
	// The reasons of events.
	reasonMoved   = "ClusterSetsChanged"     // the cluster is in different sets now
	reasonSelects = "ClusterSelectorChanged" // the selector of the set has changed

	// perSecond and burst limit the changes that are evaluated: each is compared with all sets. Further changes have no event, and are only in the
	// audit log.
	perSecond, burst = 10, 100
	// longest is the largest number of bytes of a user's name in an event, and most the largest number of sets of each kind.
	longest, most = 128, 8
)

// Reporter writes the events.
type Reporter struct {
	events typedcorev1.EventsGetter
	sets   func(context.Context) ([]cluster.ManagedClusterSet, error)
	queue  chan recordedChange
	limit  flowcontrol.PassiveRateLimiter
}

// recordedChange is a successful write.
type recordedChange struct {
	who           string
	about         corev1.ObjectReference
	before, after labels.Set
	// note is the message, if it does not depend on labels.
	note string
}

// New returns a reporter that writes events with a client of the hub's kube-apiserver. sets returns all sets of the hub.
func New(events typedcorev1.EventsGetter, sets func(context.Context) ([]cluster.ManagedClusterSet, error)) *Reporter {
	return &Reporter{events: events, sets: sets, queue: make(chan recordedChange, burst), limit: flowcontrol.NewTokenBucketPassiveRateLimiter(perSecond, burst)}
}

// Updated is called for each write of a ManagedCluster or of a ManagedClusterSet. It does not block.
func (r *Reporter) Updated(ctx context.Context, updated, old runtime.Object) {
	c, ok := changeOf(updated, old)
	if !ok || !r.limit.TryAccept() {
		return
	}
	if who, ok := request.UserFrom(ctx); ok {
		c.who = who.GetName()
	}
	select {
	case r.queue <- c:
	default:
	}
}

func changeOf(updated, old runtime.Object) (recordedChange, bool) {
	switch updated := updated.(type) {
	case *cluster.ManagedCluster:
		before := old.(*cluster.ManagedCluster).Labels
		if maps.Equal(before, updated.Labels) {
			return recordedChange{}, false
		}
		return recordedChange{
			about:  reference(clusterv1.SchemeGroupVersion.WithKind("ManagedCluster"), updated.Name, string(updated.UID)),
			before: maps.Clone(before), after: maps.Clone(updated.Labels),
		}, true
	case *cluster.ManagedClusterSet:
		before := old.(*cluster.ManagedClusterSet)
		if equality.Semantic.DeepEqual(before.Spec.ClusterSelector, updated.Spec.ClusterSelector) {
			return recordedChange{}, false
		}
		_, was := selector.Describe(before)
		_, is := selector.Describe(updated)
		return recordedChange{
			about: reference(v1beta2.SchemeGroupVersion.WithKind("ManagedClusterSet"), updated.Name, string(updated.UID)),
			note:  fmt.Sprintf("changed what the set selects from %s to %s", cut(was), cut(is)),
		}, true
	}
	return recordedChange{}, false
}

func reference(kind schema.GroupVersionKind, name, uid string) corev1.ObjectReference {
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: apiVersion, Kind: kindName, Name: name, UID: types.UID(uid)}
}

// Run writes events until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.events.Events("")})
	r.run(ctx, broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "hub-apiserver"}))
}

func (r *Reporter) run(ctx context.Context, recorder record.EventRecorder) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-r.queue:
			reason := reasonSelects
			if c.note == "" {
				sets, err := r.sets(ctx)
				if err != nil {
					klog.FromContext(ctx).V(2).Info("An event about a cluster is not written", "cluster", c.about.Name, "err", err)
					continue
				}
				c.note, reason = moved(c.before, c.after, sets), reasonMoved
				if c.note == "" {
					continue
				}
			}
			recorder.Eventf(&c.about, corev1.EventTypeNormal, reason, "user %s %s", cut(c.who), c.note)
		}
	}
}

// moved returns which sets a cluster has left and entered, or "".
func moved(before, after labels.Set, sets []cluster.ManagedClusterSet) string {
	var left, entered []string
	for i := range sets {
		selects, err := selector.For(&sets[i])
		if err != nil {
			continue // it selects nothing
		}
		switch was, is := selects.Matches(before), selects.Matches(after); {
		case was && !is:
			left = append(left, sets[i].Name)
		case is && !was:
			entered = append(entered, sets[i].Name)
		}
	}
	var said []string
	if len(left) > 0 {
		said = append(said, "took it out of "+names(left))
	}
	if len(entered) > 0 {
		said = append(said, "put it into "+names(entered))
	}
	return strings.Join(said, " and ")
}

func names(sets []string) string {
	slices.Sort(sets)
	what, more := "set ", ""
	if len(sets) > 1 {
		what = "sets "
	}
	if len(sets) > most {
		sets, more = sets[:most], fmt.Sprintf(" and %d more", len(sets)-most)
	}
	return what + strings.Join(sets, ", ") + more
}

// cut quotes a text that users choose, and limits its length.
func cut(text string) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return strconv.Quote(text)
}
