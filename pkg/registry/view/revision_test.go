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

// A replica may write of rules that nobody else sees, and be gone. The others have seen all that it had, and say what
// holds now.
func TestVisibility_RulesThatNobodyKnowsAreReplacedByThoseThatHold(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	revisions := h.store(visibility.Resource, codecs.LegacyCodec(visibility.SchemeGroupVersion),
		func() runtime.Object { return &visibility.Revision{} },
		func() runtime.Object { return &visibility.RevisionList{} })
	key := position.FleetPrefix + "/" + visibility.Resource + "/" + visibility.Name
	stored := func() string {
		revision := &visibility.Revision{}
		must(t, revisions.Get(t.Context(), key, storage.GetOptions{}, revision))
		return revision.Digest
	}
	holds := stored()
	must(t, revisions.GuaranteedUpdate(t.Context(), key, &visibility.Revision{}, false, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			in.(*visibility.Revision).Digest = "of rules that are gone"
			return in, nil
		}), nil))
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	h.eventually("the rules that hold are written again", func() (bool, string) {
		return stored() == holds, stored()
	})
}
