// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Private claims are not reported to the hub, and do not count towards the limit of those that are. A claim that is labelled later is withdrawn.
func TestClaims_PrivateOnesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, also, forAll := claim("a", "secret"), claim("id.k8s.io", "own"), claim("b", "1")
		own.SetLabels(map[string]string{labelSpokeOnly: ""})
		also.SetLabels(map[string]string{labelSpokeOnly: "true"})
		f, dynamic := observing(t, Claims{Most: 1, Reserved: []string{"a"}}, func() {}, []*corev1.Node{node("n", "1", "1", false)}, own, also, forAll)
		ctx := quiet(t)
		got := asMap(f.Observe(ctx).Claims)
		if _, told := got["a"]; told || got["b"] != "1" || got[claimID] != "uid-of-kube-system" {
			t.Errorf("the hub is told of %v", got)
		}
		forAll.SetLabels(map[string]string{labelSpokeOnly: ""})
		if _, err := dynamic.Resource(clusterClaims).Update(context.WithoutCancel(ctx), forAll, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := asMap(f.Observe(ctx).Claims); len(got) == 0 || got["b"] != "" {
			t.Errorf("the hub is told of %v", got)
		}
	})
}
