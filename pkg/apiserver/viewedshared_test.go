// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/test/await"
)

// TestViewedClusters_ShareMemoryWithStoredClusters verifies that a cluster is in memory once, for its own cache and for the view's, both initially and
// after a write. A very slow server may have two copies until the next write, so there are several writes.
func TestViewedClusters_ShareMemoryWithStoredClusters(t *testing.T) {
	h := withFleet(t)
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}})
	cached := func(name string) *cluster.ManagedCluster {
		object, err := h.stores.of(managedcluster.Kind).Cached(ctx, name, "0")
		if err != nil {
			return nil
		}
		return object.(*cluster.ManagedCluster)
	}
	shares := func(name string) bool {
		object, err := h.stores.visibleClusters.List(ctx, &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := cached(name)
		for _, shown := range object.(*cluster.ManagedClusterList).Items {
			if want != nil && shown.Name == name {
				return len(shown.Labels) > 0 && reflect.ValueOf(shown.Labels).Pointer() == reflect.ValueOf(want.Labels).Pointer() &&
					reflect.ValueOf(shown.ManagedFields).Pointer() == reflect.ValueOf(want.ManagedFields).Pointer()
			}
		}
		return false
	}
	eventually := func(what string, f func() bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, await.Limit, true, func(context.Context) (bool, error) {
			return f(), nil
		}); err != nil {
			t.Fatal(what)
		}
	}
	eventually("the cluster is not in its cache", func() bool { return cached("o1") != nil })
	if !shares("o1") {
		t.Error("the view has begun with labels and managers of its own")
	}
	tries := 0
	eventually("after many writes, the view has labels and managers of its own", func() bool {
		tries++
		h.must("root", http.MethodPatch, storedPath+"/c1", mergeType, fmt.Sprintf(`{"metadata":{"labels":{"try":"%d"}}}`, tries))
		return shares("c1")
	})
}
