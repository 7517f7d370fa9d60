// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// hubs are the hubs of the running tests: each run of a test has its own.
var hubs sync.Map

// agent returns the memory of an agent that only this run of a test has, as well as its hub.
func agent(t *testing.T, id string) *Applied {
	t.Helper()
	hub, _ := hubs.LoadOrStore(t, rand.String(10))
	return NewApplied(worktest.Client(t), HubHash(hub.(string)), id+"-"+hub.(string))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestApplied_OfOtherAgent: an agent finds the records of upstream's agent, and upstream's agent finds them again.
func TestApplied_OfOtherAgent(t *testing.T) {
	ctx, theirs, ours := t.Context(), agent(t, "their-id"), agent(t, "our-id")
	before := must[*Record](t)(theirs.Ensure(ctx, "w", nil, false))
	if _, err := theirs.client.Patch(ctx, before.Owner.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if records := must[[]*Record](t)(ours.List(ctx)); len(records) > 0 {
		t.Errorf("another agent's are ours: %v", records)
	}
	after := must[*Record](t)(ours.Ensure(ctx, "w", nil, false))
	if after.Owner != before.Owner || len(must[[]*Record](t)(ours.List(ctx))) != 1 {
		t.Errorf("it has become %+v", after)
	}
	have, err := ours.get(ctx, after.Owner.Name)
	if err != nil || !slices.Equal(have.Finalizers, []string{"example.com/x", Finalizer}) || have.Spec.AgentID != ours.agentID {
		t.Errorf("it has become %+v: %v", have, err)
	}
}

// TestApplied_TakeoverDoesNotFlap: of two running agents, neither takes over a record all the time.
func TestApplied_TakeoverDoesNotFlap(t *testing.T) {
	ctx, theirs, ours := t.Context(), agent(t, "their-id"), agent(t, "our-id")
	taken := func() int64 {
		for _, a := range []*Applied{theirs, ours} {
			must[*Record](t)(a.Ensure(ctx, "w", nil, false))
		}
		return must[*workv1.AppliedManifestWork](t)(ours.get(ctx, ours.nameOf("w"))).Generation
	}
	// One of them takes it back once.
	first := taken()
	if second, third := taken(), taken(); second != first+1 || third != second {
		t.Errorf("it was written %d times, then %d, then %d", first, second, third)
	}
}
