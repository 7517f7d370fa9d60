// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
)

// A replica that lags, however long, must not put its older rules into force; one whose front was restored from a backup
// must, or it would wait for ever.
func TestAccess_OnlyAFrontThatWentBackLetsAReplicaInsist(t *testing.T) {
	asked := 0
	var failure error
	a := newAccess(nil, fake.NewClientset().RbacV1())
	a.frontAt = func(context.Context) (uint64, uint64, error) { asked++; return 5, 7, failure }
	insists := func(roles, bindings uint64) bool {
		t.Helper()
		insist, err := a.frontWentBack(t.Context())
		must(t, err)
		return insist(&visibility.Revision{ClusterRoles: roles, ClusterRoleBindings: bindings})
	}
	if insists(9, 9) {
		t.Error("a replica that has never been behind insists")
	}
	a.behindSince = time.Now()
	if insists(9, 9) || asked > 0 {
		t.Errorf("a replica that is behind for a moment insists, or has asked %d times", asked)
	}
	a.behindSince = time.Now().Add(-24 * time.Hour)
	for _, test := range []struct {
		roles, bindings uint64
		want            bool
	}{{5, 7, false}, {4, 7, false}, {6, 7, true}, {5, 8, true}} {
		if got := insists(test.roles, test.bindings); got != test.want {
			t.Errorf("with the front at 5 and 7, and rules of %d and %d: %t", test.roles, test.bindings, got)
		}
	}
	failure = errors.New("connection refused")
	if _, err := a.frontWentBack(t.Context()); err == nil {
		t.Error("a front that cannot be asked has gone back")
	}
}

// A replica may write of rules that nobody else sees, and be gone. The others have seen all that it had, and say what
// holds now.
func TestAccess_RulesThatNobodyKnowsAreReplacedByThoseThatHold(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	h.awaitAccess(r)
	must(t, r.access.store.GuaranteedUpdate(t.Context(), revisionKey, &visibility.Revision{}, false, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			in.(*visibility.Revision).Digest = "of rules that are gone"
			return in, nil
		}), nil))
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	h.eventually("the rules that hold are written again", func() (bool, string) {
		stored := &visibility.Revision{}
		must(t, r.access.store.Get(t.Context(), revisionKey, storage.GetOptions{}, stored))
		return stored.Digest == r.access.snapshots[len(r.access.snapshots)-1].Hash(), stored.Digest
	})
}
