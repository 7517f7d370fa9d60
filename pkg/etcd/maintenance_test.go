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
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/clusterhub/clusterhub/test/await"
)

// readyz returns the status of the check as a kubelet gets it.
func readyz(server *Server) int {
	mux := http.NewServeMux()
	healthz.InstallReadyzHandler(mux, server.HealthCheck())
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return recorder.Code
}

// fill overwrites one key until etcd rejects the write, so that compaction can free nearly everything.
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

// eventually waits until the server has done something by itself.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, await.Limit, true, func(context.Context) (bool, error) {
		last = ok()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// TestFull_CompactedSpaceIsReclaimed: space that compaction can free becomes available soon.
func TestFull_CompactedSpaceIsReclaimed(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.QuotaBackendBytes = 4 << 20
	server := startServer(t, opts)
	for range 2 {
		fill(t.Context(), t, server)
		if code := readyz(server); code != http.StatusOK {
			t.Errorf("readyz of a full server is %d, but it can be read", code)
		}
		if got, err := server.client.Get(t.Context(), "big"); err != nil || len(got.Kvs) != 1 {
			t.Errorf("the object that filled the database cannot be read: %v", err)
		}
		eventually(t, "writes are accepted again", func() error {
			_, err := server.client.Put(t.Context(), "small", "x")
			return errors.Join(err, server.CheckSpace())
		})
		if alarms := server.etcd.Server.Alarms(); len(alarms) > 0 {
			t.Errorf("the alarms %v are left", alarms)
		}
	}
}

// TestFull_LiveObjectsCanBeDeleted: deleting objects is the only way to make room without a restart.
func TestFull_LiveObjectsCanBeDeleted(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.QuotaBackendBytes = 4 << 20
	server := startServer(t, opts)
	value := strings.Repeat("x", 256<<10)
	for i := 0; ; i++ {
		if _, err := server.client.Put(t.Context(), fmt.Sprintf("kept-%d", i), value); err != nil {
			break
		}
	}
	full := func() {
		t.Helper()
		if code := readyz(server); code != http.StatusOK {
			t.Errorf("readyz of a full server is %d, but it can be read", code)
		}
		if err := server.CheckSpace(); err == nil || !strings.Contains(err.Error(), "--embedded-etcd-quota-backend-bytes") {
			t.Errorf("of a database that is full of live objects it is said: %v", err)
		}
		if got, err := server.client.Get(t.Context(), "kept-0"); err != nil || len(got.Kvs) != 1 {
			t.Errorf("an object cannot be read: %v", err)
		}
	}
	full()
	server.Stop()
	server = startServer(t, opts)
	full()
	server.Stop()

	larger := opts
	larger.QuotaBackendBytes = 256 << 20
	server = startServer(t, larger)
	if !server.full.Load() {
		t.Error("the start has waited until there was room")
	}
	eventually(t, "writes are accepted with a larger quota", func() error {
		_, err := server.client.Put(t.Context(), "more", value)
		return errors.Join(err, server.CheckSpace())
	})
	server.Stop()

	server = startServer(t, opts)
	full()
	if _, err := server.client.Delete(t.Context(), "kept-", clientv3.WithPrefix()); err != nil {
		t.Fatalf("a full database cannot be emptied: %v", err)
	}
	eventually(t, "writes are accepted again", func() error {
		_, err := server.client.Put(t.Context(), "small", "x")
		return errors.Join(err, server.CheckSpace())
	})
}

// TestRoom_HasReserve: writes are rejected for lack of room while some is left for deletions, before etcd itself rejects anything.
func TestRoom_HasReserve(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.QuotaBackendBytes = 8 << 20
	server := startServer(t, opts)
	value := strings.Repeat("x", 64<<10)
	for i := 0; server.CheckSpace() == nil; i++ {
		if _, err := server.client.Put(t.Context(), fmt.Sprintf("kept-%d", i), value); err != nil {
			t.Fatal(err)
		}
		server.etcd.Server.Backend().ForceCommit() // the size is measured at each commit; there are ten commits per second
	}
	for range 4 {
		if _, err := server.client.Put(t.Context(), "kept-0", value); err != nil {
			t.Errorf("there is no room for deletions: %v", err)
		}
	}
	for quota, want := range map[int64]int64{8 << 20: 7 << 20, 8 << 30: 8<<30 - 256<<20} {
		if got := (Options{QuotaBackendBytes: quota}).limit(); got != want {
			t.Errorf("of the quota %d, %d can be filled, want %d", quota, got, want)
		}
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

func TestHealthCheck_ReportsStoppedServer(t *testing.T) {
	server := startServer(t, testOptions(t.TempDir()))
	server.etcd.Server.Stop()
	<-server.Done()
	for _, check := range []healthz.HealthChecker{server.HealthCheck(), server.AliveCheck()} {
		if err := check.Check(nil); err == nil || !strings.Contains(err.Error(), "stopped") {
			t.Errorf("the check says %v", err)
		}
	}
}
