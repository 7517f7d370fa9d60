// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

// agent is the memory of an agent of a hub that only this test has.
func agent(t *testing.T, hub, id string) *Applied {
	t.Helper()
	return NewApplied(worktest.Client(t), HubHash(hub+t.Name()), id)
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

func TestApplied(t *testing.T) {
	ctx, a := t.Context(), agent(t, "", "")
	if r, err := a.Find(ctx, "w"); r != nil || err != nil {
		t.Errorf("there is a record: %v, %v", r, err)
	}
	r := must[*Record](t)(a.Make(ctx, "w", map[string]string{"l": "v"}))
	target := apply.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "n", Name: "cm"}
	if err := a.Remember(ctx, r, []Resource{{Target: target}, {Target: target, UID: "u"}}); err != nil {
		t.Fatal(err)
	}
	since := time.Now().Truncate(time.Second)
	if err := a.Evict(ctx, r, &since); err != nil {
		t.Fatal(err)
	}
	read := must[*Record](t)(a.Find(ctx, "w"))
	if read.Owner != r.Owner || read.Work != "w" || read.HubHash != a.hubHash || !slices.Equal(read.Resources, r.Resources) ||
		!read.Evicting.Equal(since) || read.Deleting || read.version != r.version {
		t.Errorf("what was written is read as %+v, want %+v", read, r)
	}
	version := read.version
	if err := a.Remember(ctx, read, slices.Clone(read.Resources)); err != nil || read.version != version {
		t.Errorf("what is remembered was written again: %v", err)
	}
	if again := must[*Record](t)(a.Make(ctx, "w", nil)); again.version != version {
		t.Error("what is there was written again")
	}
	stale := *read
	if err := a.Evict(ctx, read, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Remember(ctx, &stale, nil); !apierrors.IsConflict(err) {
		t.Errorf("an old record was written: %v", err)
	}
	if err := a.Drop(ctx, read); !apierrors.IsConflict(err) {
		t.Errorf("a record was dropped that is not to go: %v", err)
	}
	if err := a.Forget(ctx, read); err != nil {
		t.Fatal(err)
	}
	if left := must[*Record](t)(a.Find(ctx, "w")); left == nil || !left.Deleting {
		t.Errorf("it is not to go, or has gone before it was dropped: %+v", left)
	}
	if err := a.Drop(ctx, read); err != nil {
		t.Fatal(err)
	}
	if left := must[*Record](t)(a.Find(ctx, "w")); left != nil {
		t.Error("it is still there")
	}
}

// TestApplied_OfAnotherAgent: an agent finds what upstream's has made, and upstream's finds it again.
func TestApplied_OfAnotherAgent(t *testing.T) {
	ctx, theirs, ours := t.Context(), agent(t, "", "their-id"), agent(t, "", "our-id")
	before := must[*Record](t)(theirs.Make(ctx, "w", nil))
	if _, err := theirs.client.Patch(ctx, before.Owner.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if records := must[[]*Record](t)(ours.List(ctx)); len(records) > 0 {
		t.Errorf("another agent's are ours: %v", records)
	}
	after := must[*Record](t)(ours.Make(ctx, "w", nil))
	if after.Owner != before.Owner || len(must[[]*Record](t)(ours.List(ctx))) != 1 {
		t.Errorf("it has become %+v", after)
	}
	have, err := ours.get(ctx, after.Owner.Name)
	if err != nil || !slices.Equal(have.Finalizers, []string{"example.com/x", Finalizer}) || have.Spec.AgentID != "our-id" {
		t.Errorf("it has become %+v: %v", have, err)
	}
}

// TestApplied_TakenBack: of two agents that run, neither takes a record for ever.
func TestApplied_TakenBack(t *testing.T) {
	ctx, theirs, ours := t.Context(), agent(t, "", "their-id"), agent(t, "", "our-id")
	taken := func() int64 {
		for _, a := range []*Applied{theirs, ours} {
			must[*Record](t)(a.Make(ctx, "w", nil))
		}
		return must[*workv1.AppliedManifestWork](t)(ours.get(ctx, ours.nameOf("w"))).Generation
	}
	// One of them takes it back once.
	first := taken()
	if second, third := taken(), taken(); second != first+1 || third != second {
		t.Errorf("it was written %d times, then %d, then %d", first, second, third)
	}
}

// TestApplied_List leaves out what contradicts itself: a name that belongs to another work.
func TestApplied_List(t *testing.T) {
	ctx, a := t.Context(), agent(t, "", t.Name())
	must[*Record](t)(a.Make(ctx, "good", nil))
	forged := must[*Record](t)(a.Make(ctx, "forged", nil))
	if err := a.patch(ctx, forged, map[string]any{"spec": map[string]any{"manifestWorkName": "other"}}, nil); err != nil {
		t.Fatal(err)
	}
	if records := must[[]*Record](t)(a.List(ctx)); len(records) != 1 || records[0].Work != "good" {
		t.Errorf("the records are %v", records)
	}
}

func TestApplied_Rival(t *testing.T) {
	ctx, ours := t.Context(), agent(t, "", "our-id")
	other, foreign, former := agent(t, "", "other-id"), agent(t, "other", "other-id"), agent(t, "former", "our-id")
	for name, c := range map[string]struct {
		of   *Applied
		what func(*Applied, *Record) error
		want string
	}{
		"same":    {of: ours, want: "same"},
		"agent":   {of: other, want: "agent"},
		"foreign": {of: foreign, want: "foreign of another hub (" + foreign.nameOf("foreign") + ")"},
		"former":  {of: former},
		"missing": {of: ours, what: func(a *Applied, r *Record) error { now := time.Now(); return a.Evict(ctx, r, &now) }},
		"going":   {of: ours, what: func(a *Applied, r *Record) error { return a.Forget(context.WithoutCancel(ctx), r) }},
		"anew":    {of: ours, what: func(_ *Applied, r *Record) error { r.Owner.UID = "former"; return nil }},
	} {
		r := must[*Record](t)(c.of.Make(ctx, name, nil))
		if c.what != nil {
			if err := c.what(c.of, r); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := ours.Rival(ctx, r.Owner.Reference()); got != c.want || err != nil {
			t.Errorf("%s is the rival %q (%v), want %q", name, got, err, c.want)
		}
	}
}
