// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// TestVisibility_UnknownRulesAreReplaced: a replica may write a revision for rules that no other replica observes, and end.
// The others have observed everything that it had, and write the current state.
func TestVisibility_UnknownRulesAreReplaced(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	holds := h.stored().Digest
	h.changeStored(func(revision *storedRevision) { revision.Digest = "of rules that are gone" })
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	h.eventually("the rules that hold are written again", func() (bool, string) {
		return h.stored().Digest == holds, h.stored().Digest
	})
}

type storedRevision = visibility.Revision

const revisionKey = position.FleetPrefix + "/" + visibility.Resource + "/" + visibility.Name

func (h *hub) revisions() storage.Interface {
	return h.store(visibility.Resource, codecs.LegacyCodec(visibility.SchemeGroupVersion),
		func() runtime.Object { return &visibility.Revision{} },
		func() runtime.Object { return &visibility.RevisionList{} })
}

// stored returns the current visibility revision.
func (h *hub) stored() *storedRevision {
	h.t.Helper()
	revision := &visibility.Revision{}
	must(h.t, h.revisions().Get(h.t.Context(), revisionKey, storage.GetOptions{}, revision))
	return revision
}

func (h *hub) changeStored(change func(*storedRevision)) {
	h.t.Helper()
	must(h.t, h.revisions().GuaranteedUpdate(h.t.Context(), revisionKey, &visibility.Revision{}, false, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			change(in.(*visibility.Revision))
			return in, nil
		}), nil))
}
