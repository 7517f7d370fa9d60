// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRules_OnlyRevertedFrontAllowsOverride: a replica that lags, however long, must not put its older rules into effect; one whose front
// was restored from a backup must, or it would wait forever.
func TestRules_OnlyRevertedFrontAllowsOverride(t *testing.T) {
	asked := 0
	var failure error
	r := newRules(nil, fake.NewClientset().RbacV1())
	r.frontAt = func(context.Context) (uint64, uint64, error) { asked++; return 5, 7, failure }
	insists := func(roles, bindings uint64) bool {
		t.Helper()
		insist, err := r.frontWentBack(t.Context())
		must(t, err)
		return insist(&visibility.Revision{ClusterRoles: roles, ClusterRoleBindings: bindings})
	}
	if insists(9, 9) {
		t.Error("a replica that has never been behind insists")
	}
	r.behindSince = time.Now()
	if insists(9, 9) || asked > 0 {
		t.Errorf("a replica that is behind for a moment insists, or has asked %d times", asked)
	}
	r.behindSince = time.Now().Add(-24 * time.Hour)
	for _, test := range []struct {
		roles, bindings uint64
		want            bool
	}{{5, 7, false}, {4, 7, false}, {6, 7, true}, {5, 8, true}} {
		if got := insists(test.roles, test.bindings); got != test.want {
			t.Errorf("with the front at 5 and 7, and rules of %d and %d: %t", test.roles, test.bindings, got)
		}
	}
	failure = errors.New("connection refused")
	if _, err := r.frontWentBack(t.Context()); err == nil {
		t.Error("a front that cannot be asked has gone back")
	}
}
