// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// flood creates objects from several connections, and returns how many were created. All others must be rejected as by a quota.
func flood(t *testing.T, n int, flag string, make func(i int) error) int {
	t.Helper()
	var made, next atomic.Int32
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for i := next.Add(1); int(i) <= n; i = next.Add(1) {
				switch err := make(int(i)); {
				case err == nil:
					made.Add(1)
				case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: "+flag):
					t.Errorf("got %v", err)
				}
			}
		})
	}
	all.Wait()
	return int(made.Load())
}

// TestBounds_TenantCannotFillEtcd fills one namespace with objects of two kinds, and a different one with bytes. It costs 250 small and 25 large
// requests.
func TestBounds_TenantCannotFillEtcd(t *testing.T) {
	small, large := harness.NewNamespace(t), harness.NewNamespace(t)
	bindings := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(small)
	works := harness.Ours(t, harness.Hub(t).AdminConfig()).WorkV1().ManifestWorks
	work := func(bytes int) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{GenerateName: "flood-"}}
		w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"a"},"data":{"a":"` + strings.Repeat("x", bytes) + `"}}`)}}}
		return w
	}
	made := flood(t, maxObjects+50, "--max-objects-per-namespace", func(i int) (err error) {
		if i%2 == 0 {
			_, err = works(small).Create(t.Context(), work(1), metav1.CreateOptions{})
			return err
		}
		name := fmt.Sprintf("set-%d", i)
		_, err = bindings.Create(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: harness.Named(name),
			Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name}}, metav1.CreateOptions{})
		return err
	})
	if made != maxObjects {
		t.Errorf("%d objects were made, want %d", made, maxObjects)
	}
	made = flood(t, 25, "--max-bytes-per-namespace", func(int) error {
		return harness.ErrorOf(works(large).Create(t.Context(), work(500_000), metav1.CreateOptions{}))
	})
	if made != maxBytesOfAll/501_000 {
		t.Errorf("%d works of 500,000 bytes were made in %d bytes", made, maxBytesOfAll)
	}
	// A full namespace blocks no agent and no deletion, and each deletion frees space.
	list := harness.Must(works(large).List(t.Context(), metav1.ListOptions{}))(t)
	one := list.Items[0].Name
	status := []byte(`{"status":{"conditions":[{"type":"Applied","status":"True","reason":"A","message":"` + strings.Repeat("x", 30000) + `","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`)
	for range maxBytesOfAll % 500_000 / 30000 { // fills it except for the last 30,000 bytes
		harness.Must(works(large).Create(t.Context(), work(29_000), metav1.CreateOptions{}))(t)
	}
	harness.WantForbidden(t, harness.ErrorOf(works(large).Create(t.Context(), work(31_000), metav1.CreateOptions{})), "--max-bytes-per-namespace")
	for _, w := range list.Items[:3] {
		harness.Must(works(large).Patch(t.Context(), w.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status"))(t)
	}
	if err := works(large).Delete(t.Context(), one, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "a deletion makes room", func(ctx context.Context) (bool, error) {
		_, err := works(large).Create(ctx, work(31_000), metav1.CreateOptions{})
		return err == nil, unlessForbidden(err)
	})
}

// unlessForbidden returns nil for a rejected write.
func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
