// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

// home is where records are stored. Each test here runs for both.
type home struct {
	*testing.T
	client    dynamic.Interface
	namespace string
	// applied is whether records are AppliedManifestWorks.
	applied bool
}

func inEachHome(t *testing.T, test func(h *home)) {
	for name, applied := range map[string]bool{"cluster": true, "namespace": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&home{t, worktest.Client(t), worktest.Namespace(t), applied})
		})
	}
}

// agent returns the memory of an agent of a hub that only this test has.
func (h *home) agent(hub, id string) Memory {
	hash := HubHash(hub + h.namespace)
	if id != "" {
		id += h.namespace
	}
	if h.applied {
		return NewApplied(h.client, hash, id)
	}
	return NewNamespaced(h.client, h.namespace, hash, id)
}

func (h *home) check(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *home) make(m Memory, work string) *Record {
	h.Helper()
	return h.ensure(m, work, false)
}

func (h *home) ensure(m Memory, work string, isNew bool) *Record {
	h.Helper()
	r, err := m.Ensure(h.Context(), work, map[string]string{"l": "v"}, isNew)
	h.check(err)
	return r
}

func (h *home) find(m Memory, work string) *Record {
	h.Helper()
	r, err := m.Find(h.Context(), work)
	h.check(err)
	return r
}

// names returns the names of the works that a memory has, in order.
func (h *home) names(m Memory) string {
	h.Helper()
	records, err := m.List(h.Context())
	h.check(err)
	var names []string
	for _, r := range records {
		names = append(names, r.Work)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (h *home) object(r *Record) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	h.Helper()
	t := r.Owner.Target()
	client := h.client.Resource(t.GroupVersionResource).Namespace(t.Namespace)
	object, err := client.Get(h.Context(), t.Name, metav1.GetOptions{})
	h.check(err)
	return client, object
}

// forge writes a record as another client.
func (h *home) forge(r *Record, applied, data string) {
	h.Helper()
	client, _ := h.object(r)
	patch := data
	if h.applied {
		patch = applied
	}
	_, err := client.Patch(h.Context(), r.Owner.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	h.check(err)
}

func (h *home) target(name string) apply.Target {
	return apply.Target{GroupVersionResource: apply.ConfigMaps, Namespace: h.namespace, Name: name}
}

func TestMemory(t *testing.T) {
	inEachHome(t, func(h *home) {
		ctx, m := h.Context(), h.agent("", "")
		if r := h.find(m, "w"); r != nil || h.names(m) != "" {
			h.Errorf("there is a record: %v", r)
		}
		r := h.make(m, "w")
		if r.Owner.UID == "" || r.Work != "w" || r.Deleting || r.Version() == "" {
			h.Errorf("it is made as %+v", r)
		}
		h.check(m.SetResources(ctx, r, []AppliedResource{{Target: h.target("a")}, {Target: h.target("b"), UID: "u"}}))
		since := time.Now().Truncate(time.Second)
		h.check(m.Evict(ctx, r, &since))
		read := h.find(m, "w")
		if read.Owner != r.Owner || read.Work != "w" || read.HubHash != r.HubHash || !slices.Equal(read.Resources, r.Resources) ||
			!read.Evicting.Equal(since) || read.Deleting || read.version != r.version || h.names(m) != "w" {
			h.Errorf("what was written is read as %+v, want %+v", read, r)
		}
		if _, object := h.object(r); object.GetLabels()["l"] != "v" {
			h.Errorf("its labels are %v", object.GetLabels())
		}
		if err := m.SetResources(ctx, read, slices.Clone(read.Resources)); err != nil || read.version != r.version {
			h.Errorf("what is remembered was written again: %v", err)
		}
		for _, isNew := range []bool{false, true} {
			if h.ensure(m, "w", isNew).version != r.version {
				h.Error("what is there was written again")
			}
		}
		if r := h.ensure(m, "new", true); r.Work != "new" || h.names(m) != "new w" {
			h.Errorf("it is made as %+v", r)
		}
		stale := *read
		h.check(m.Evict(ctx, read, nil))
		if again := h.find(m, "w"); again.Evicting != nil || len(again.Resources) != 2 {
			h.Errorf("it has become %+v", again)
		}
		for what, write := range map[string]func(r *Record) error{
			"remembered": func(r *Record) error { return m.SetResources(ctx, r, nil) },
			"evicted":    func(r *Record) error { now := time.Now(); r.Evicting = nil; return m.Evict(ctx, r, &now) },
			"forgotten":  func(r *Record) error { return m.StartDeletion(ctx, r) },
		} {
			old := stale
			if err := write(&old); !apierrors.IsConflict(err) {
				h.Errorf("an old record was %s: %v", what, err)
			}
		}
		if err := m.CompleteDeletion(ctx, read); !apierrors.IsConflict(err) {
			h.Errorf("a record was dropped that is not to go: %v", err)
		}
		h.check(m.StartDeletion(ctx, read))
		if left := h.find(m, "w"); left == nil || !left.Deleting || len(left.Resources) != 2 {
			h.Errorf("it is not to go, or has gone before it was dropped: %+v", left)
		}
		if made := h.make(m, "w"); made.Owner != r.Owner || !made.Deleting {
			h.Errorf("a record that is being deleted was created again: %+v", made)
		}
		h.check(m.SetResources(ctx, read, nil))
		h.check(m.CompleteDeletion(ctx, read))
		h.check(m.CompleteDeletion(ctx, read))
		if left := h.find(m, "w"); left != nil {
			h.Error("it is still there")
		}
		created := h.make(m, "w")
		h.check(m.CompleteDeletion(ctx, read))
		if created.Owner == r.Owner || h.find(m, "w") == nil {
			h.Error("another one was dropped")
		}
	})
}

// TestMemory_OfOtherAgent: the records of several agents are distinguished, and an agent finds those of another agent of the same hub.
func TestMemory_OfOtherAgent(t *testing.T) {
	inEachHome(t, func(h *home) {
		theirs, ours, elsewhere := h.agent("", "their-id"), h.agent("", "our-id"), h.agent("other", "our-id")
		before := h.make(theirs, "w")
		if names := h.names(ours); names != "" || h.find(elsewhere, "w") != nil {
			h.Errorf("another agent's are ours: %s", names)
		}
		h.make(elsewhere, "w")
		h.make(elsewhere, "v")
		if after := h.make(ours, "w"); after.Owner != before.Owner || h.names(ours) != "v w w" || h.names(theirs) != "" {
			h.Errorf("it has become %+v, and ours are %s", after, h.names(ours))
		}
	})
}

// TestMemory_Forged: records that are inconsistent or invalid are ignored.
func TestMemory_Forged(t *testing.T) {
	inEachHome(t, func(h *home) {
		m := h.agent("", "id")
		h.make(m, "good")
		forged := h.make(m, "forged")
		h.forge(forged, `{"spec": {"manifestWorkName": "other"}}`, `{"data": {"work": "other"}}`)
		if names := h.names(m); names != "good" {
			h.Errorf("the records are %s", names)
		}
		if r := h.make(m, "forged"); r.Owner != forged.Owner || h.names(m) != "forged good" {
			h.Errorf("it is %+v", r)
		}
		if !h.applied {
			h.forge(forged, "", `{"data": {"resources": "no JSON", "evictionStartTime": "never"}, "metadata": {"labels": {"work.clusterhub.dev/agent": null}}}`)
			if r := h.make(m, "forged"); len(r.Resources) > 0 || r.Evicting != nil || h.names(m) != "forged good" {
				h.Errorf("it is %+v", r)
			}
		}
	})
}

func TestMemory_Rival(t *testing.T) {
	inEachHome(t, func(h *home) {
		ours, other, foreign, former := h.agent("", "our-id"), h.agent("", "other-id"), h.agent("other", "other-id"), h.agent("former", "our-id")
		for name, c := range map[string]struct {
			of   Memory
			what func(Memory, *Record) error
			want string
		}{
			"same":    {of: ours, want: "same"},
			"agent":   {of: other, want: "agent"},
			"foreign": {of: foreign, want: "foreign of another hub"},
			"former":  {of: former},
			"missing": {of: ours, what: func(m Memory, r *Record) error { now := time.Now(); return m.Evict(h.Context(), r, &now) }},
			"going":   {of: ours, what: func(m Memory, r *Record) error { return m.StartDeletion(context.WithoutCancel(h.Context()), r) }},
			"created": {of: ours, what: func(_ Memory, r *Record) error { r.Owner.UID = "former"; return nil }},
			"gone": {of: ours, what: func(m Memory, r *Record) error {
				if err := m.StartDeletion(h.Context(), r); err != nil {
					return err
				}
				return m.CompleteDeletion(h.Context(), r)
			}},
		} {
			r := h.make(c.of, name)
			if c.what != nil {
				h.check(c.what(c.of, r))
			}
			got, err := ours.OtherOwner(h.Context(), r.Owner.Reference())
			h.check(err)
			if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want+" ")) {
				h.Errorf("%s is the rival %q, want %q", name, got, c.want)
			}
		}
	})
}
