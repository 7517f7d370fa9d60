// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// An object that causes a panic does not end the process, and does not block other objects.
func TestFeed_SurvivesPanic(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	broken := func(context.Context, *clusterv1.ManagedCluster) { panic("a fault") }
	handler := feed(&f.process.scheduler, broken, broken).handler
	handler.Create(t.Context(), event.CreateEvent{Object: managed("c2")}, f.queue)
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: managed("c2"), ObjectNew: managed("c2")}, f.queue)
	handler.Delete(t.Context(), event.DeleteEvent{Object: managed("c2")}, f.queue)
	if !slices.Contains(f.queue.all, everything) {
		t.Error("no round is asked for")
	}
	f.settle()
	f.has("p-decision-1 0: c1")
}
