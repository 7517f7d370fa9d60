// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

const address = "10.1.2.3:2379"

// TestExplain_UnresponsiveEtcd: the error for a late or missing response of etcd has a status and a Retry-After, and contains no address.
func TestExplain_UnresponsiveEtcd(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int32
	}{
		{status.Error(codes.Unavailable, "connection error: dial tcp "+address), 503},
		{fmt.Errorf("reading: %w", status.Error(codes.Unavailable, address)), 503},
		{rpctypes.ErrNoLeader, 503},
		{rpctypes.ErrLeaderChanged, 503},
		{rpctypes.ErrTooManyRequests, 503},
		{rpctypes.ErrTimeout, 504},
		{rpctypes.ErrTimeoutDueToLeaderFail, 504},
		{rpctypes.ErrTimeoutDueToConnectionLost, 504},
		{fmt.Errorf("%s: %w", address, context.DeadlineExceeded), 504},
		{status.Error(codes.DeadlineExceeded, address), 504},
	} {
		wantUnanswered(t, c.err.Error(), explain(c.err), c.code, retryAfter)
		if c.code == 504 {
			wantUnanswered(t, "write: "+c.err.Error(), explainWrite(c.err), c.code, 0)
		} else {
			wantUnanswered(t, "write: "+c.err.Error(), explainWrite(c.err), c.code, retryAfter)
		}
	}
	for _, err := range []error{nil, context.Canceled, rpctypes.ErrCompacted, storage.NewKeyNotFoundError("k", 1), apierrors.NewBadRequest("x"), errors.New("x")} {
		if got := explain(err); got != err { //nolint:errorlint // It has to be the same.
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

func wantUnanswered(t *testing.T, what string, err error, code, after int32) {
	t.Helper()
	var got *apierrors.StatusError
	if !errors.As(err, &got) || got.ErrStatus.Code != code || got.ErrStatus.Details == nil || got.ErrStatus.Details.RetryAfterSeconds != after ||
		strings.Contains(err.Error(), address) {
		t.Errorf("%s: got %#v, want %d", what, err, code)
	}
}

// TestExplain_ReadsAndWrites uses a connection without responses, for reads and writes.
func TestExplain_ReadsAndWrites(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	defaults := storagebackend.NewDefaultConfig("/registry", serializer.NewCodecFactory(scheme).LegacyCodec(clusterv1.SchemeGroupVersion))
	config := defaults.ForResource(cluster.Resource("managedclusters"))
	config.Transport.ServerList = []string{"http://" + silent.Addr().String()}
	config.Transport.TracerProvider = noopoteltrace.NewTracerProvider()
	newObject := func() runtime.Object { return &cluster.ManagedCluster{} }
	store, destroy, err := Options{}.NewRaw(config, "/managedclusters", newObject, func() runtime.Object { return &cluster.ManagedClusterList{} })
	if err != nil {
		t.Fatal(err)
	}
	defer destroy()
	const key = "/managedclusters/c1"
	for name, ask := range map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { return store.Get(ctx, key, storage.GetOptions{}, newObject()) },
		"list": func(ctx context.Context) error {
			return store.GetList(ctx, "/managedclusters", storage.ListOptions{Predicate: storage.Everything}, &cluster.ManagedClusterList{})
		},
		"version": func(ctx context.Context) error {
			_, err := store.GetCurrentResourceVersion(ctx)
			return err
		},
		"create": func(ctx context.Context) error { return store.Create(ctx, key, newObject(), newObject(), 0) },
		"update": func(ctx context.Context) error {
			return store.GuaranteedUpdate(ctx, key, newObject(), false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) { return o, nil }), nil)
		},
		"delete": func(ctx context.Context) error {
			return store.Delete(ctx, key, newObject(), nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		after := int32(retryAfter)
		if name == "create" || name == "update" || name == "delete" {
			after = 0
		}
		wantUnanswered(t, name, ask(ctx), 504, after)
		cancel()
	}
}
