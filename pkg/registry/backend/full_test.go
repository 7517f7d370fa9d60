// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// TestFull_EtcdRefusesWrites: an etcd that has reached its quota rejects writes that add data, with either kind of client. The client gets a Status
// that helps, and not an internal error. Deletions succeed.
func TestFull_EtcdRefusesWrites(t *testing.T) {
	for name, connect := range map[string]func(*etcd.Server) backend.Connect{
		"dialled": func(*etcd.Server) backend.Connect { return backend.Dial }, "in the process": func(s *etcd.Server) backend.Connect { return s.Connect },
	} {
		options := etcd.NewOptions()
		options.DataDir, options.UnsafeNoFsync, options.QuotaBackendBytes = t.TempDir(), true, 2<<20
		server, err := etcd.Start(t.Context(), *options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		transport := server.Transport()
		transport.TracerProvider = noopoteltrace.NewTracerProvider()
		config := registrytest.Options(transport, registrytest.Scheme(), clusterv1.SchemeGroupVersion, "managedclusters").StorageConfig
		newObject := func() runtime.Object { return &cluster.ManagedCluster{} }
		newList := func() runtime.Object { return &cluster.ManagedClusterList{} }
		store, destroy, err := backend.Options{Connect: connect(server)}.NewRaw(config, "/managedclusters", newObject, newList)
		if err != nil {
			t.Fatal(err)
		}
		defer destroy()
		key := func(i int) string { return fmt.Sprintf("/managedclusters/%d", i) }
		create := func(i int) error {
			object := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i),
				Annotations: map[string]string{"noise": strings.Repeat("x", 128<<10)}}}
			return store.Create(t.Context(), key(i), object, &cluster.ManagedCluster{}, 0)
		}
		update := func(i, n int) error {
			return store.GuaranteedUpdate(t.Context(), key(i), &cluster.ManagedCluster{}, false, nil,
				func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
					in.(*cluster.ManagedCluster).Annotations["more"] = fmt.Sprint(n, strings.Repeat("x", 128<<10))
					return in, nil, nil
				}, nil)
		}
		if err := create(0); err != nil {
			t.Fatal(err)
		}
		// A full server reclaims space at any time. Once nothing is left to reclaim, both are rejected.
		made := 1
		var created, updated error
		for try := 0; try < 100 && (created == nil || updated == nil); try++ {
			for created = create(made); created == nil && made < 1000; created = create(made) {
				made++
			}
			updated = update(0, try)
		}
		refused(t, name+": create", created)
		refused(t, name+": update", updated)
		if err := store.Get(t.Context(), key(0), storage.GetOptions{}, &cluster.ManagedCluster{}); err != nil {
			t.Errorf("%s: get: %v", name, err)
		}
		for i := range made {
			err := store.Delete(t.Context(), key(i), &cluster.ManagedCluster{}, nil, rest.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
			if err != nil {
				t.Errorf("%s: delete: %v", name, err)
			}
		}
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInsufficientStorage ||
		!strings.Contains(err.Error(), "delete what is not needed") {
		t.Errorf("%s: %v", what, err)
	}
}
