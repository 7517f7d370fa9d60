// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/apiserver/pkg/server/healthz"
)

// readyz asks the check the way a kubelet does.
func readyz(server *Server) int {
	mux := http.NewServeMux()
	healthz.InstallReadyzHandler(mux, server.HealthCheck())
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return recorder.Code
}

// fill overwrites one key until etcd refuses, so that compaction can free nearly everything.
func fill(ctx context.Context, t *testing.T, server *Server) {
	t.Helper()
	value := strings.Repeat("x", 256<<10)
	for range 1000 {
		if _, err := server.client.Put(ctx, "big", value); err != nil {
			if !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the quota was never reached")
}

func TestHealthCheck_ReportsNoSpaceUntilARestartReclaimsIt(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.QuotaBackendBytes = 4 << 20
	server := startServer(t, opts)
	if code := readyz(server); code != http.StatusOK {
		t.Fatalf("readyz of a new server is %d", code)
	}

	fill(t.Context(), t, server)
	err := server.HealthCheck().Check(nil)
	if err == nil || !strings.Contains(err.Error(), "NOSPACE") || !strings.Contains(err.Error(), "--embedded-etcd-quota-backend-bytes") {
		t.Errorf("the check of a full server says %v", err)
	}
	if code := readyz(server); code == http.StatusOK {
		t.Error("readyz of a full server is 200")
	}
	server.Stop()

	server = startServer(t, opts)
	if err := server.check(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := server.client.Put(t.Context(), "small", "x"); err != nil {
		t.Errorf("write after a restart: %v", err)
	}
	if got, err := server.client.Get(t.Context(), "big"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("the object that filled the database is gone: %v", err)
	}
}

func TestHealthCheck_NoSpaceStaysWhereNothingCanBeReclaimed(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.QuotaBackendBytes = 4 << 20
	server := startServer(t, opts)
	value := strings.Repeat("x", 256<<10)
	for i := 0; ; i++ {
		if _, err := server.client.Put(t.Context(), fmt.Sprintf("kept-%d", i), value); err != nil {
			break
		}
	}
	server.Stop()
	server = startServer(t, opts)
	if err := server.check(); err == nil {
		t.Error("a database full of live objects is healthy after a restart")
	}
	server.Stop()

	opts.QuotaBackendBytes = 256 << 20
	server = startServer(t, opts)
	if err := server.check(); err != nil {
		t.Errorf("with a larger quota: %v", err)
	}
	if _, err := server.client.Put(t.Context(), "more", value); err != nil {
		t.Errorf("write with a larger quota: %v", err)
	}
}

func TestHealthCheck_ReportsCorruption(t *testing.T) {
	server := startServer(t, testOptions(t.TempDir()))
	_, err := etcdserverpb.NewMaintenanceClient(clientFor(t, server).ActiveConnection()).Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action:   etcdserverpb.AlarmRequest_ACTIVATE,
		MemberID: uint64(server.etcd.Server.MemberID()),
		Alarm:    etcdserverpb.AlarmType_CORRUPT,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = server.check()
	if err == nil || !strings.Contains(err.Error(), "CORRUPT") || !strings.Contains(err.Error(), "backup") {
		t.Errorf("the check of a corrupt server says %v", err)
	}
	if code := readyz(server); code == http.StatusOK {
		t.Error("readyz of a corrupt server is 200")
	}
}

func TestHealthCheck_ReportsAServerThatStoppedByItself(t *testing.T) {
	server := startServer(t, testOptions(t.TempDir()))
	server.etcd.Server.Stop()
	<-server.Done()
	if err := server.check(); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("the check says %v", err)
	}
}
