// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestBounds_TenantPlacementsAreLimited floods a namespace with placements from many connections.
func TestBounds_TenantPlacementsAreLimited(t *testing.T) {
	placements := harness.Admin(t).ClusterV1beta1().Placements(harness.NewNamespace(t))
	var made atomic.Int32
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			p := &v1beta1.Placement{ObjectMeta: harness.Named(fmt.Sprintf("flood-%d", i))}
			if i%2 == 0 {
				p.Name, p.GenerateName = "", "flood-"
			}
			_, err := placements.Create(t.Context(), p, metav1.CreateOptions{})
			switch {
			case err == nil:
				made.Add(1)
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("the namespace has %d placements", maxPlacements)):
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	list := harness.Must(placements.List(t.Context(), metav1.ListOptions{}))(t)
	if int(made.Load()) != maxPlacements || len(list.Items) != maxPlacements {
		t.Fatalf("%d were made, and %d are there", made.Load(), len(list.Items))
	}
	body := []byte(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"applied"}}`)
	_, err := placements.Patch(t.Context(), "applied", types.ApplyYAMLPatchType, body, metav1.PatchOptions{FieldManager: "test"})
	harness.WantForbidden(t, err, "--max-placements-per-namespace")
	_, err = placements.Create(t.Context(), &v1beta1.Placement{ObjectMeta: harness.Named("dry")}, metav1.CreateOptions{DryRun: harness.DryRun(true)})
	harness.WantForbidden(t, err, "--max-placements-per-namespace")
	// Existing placements can be changed, and other namespaces have separate limits.
	harness.Must(placements.Patch(t.Context(), list.Items[0].Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))(t)
	harness.Must(harness.Admin(t).ClusterV1beta1().Placements(harness.NewNamespace(t)).Create(t.Context(), &v1beta1.Placement{ObjectMeta: harness.Named("other")}, metav1.CreateOptions{}))(t)
}
