// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"

	"github.com/clusterhub/clusterhub/test/await"
)

// childDataDir, if set, makes the test binary a process that runs an etcd on that directory until it is killed.
const childDataDir = "CLUSTERHUB_TEST_ETCD_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDataDir); dir != "" {
		runChild(dir)
		return
	}
	os.Exit(m.Run())
}

// runChild prints "acknowledged N" after each write that etcd acknowledged.
func runChild(dir string) {
	opts := NewOptions()
	opts.DataDir = dir
	server, err := Start(context.Background(), *opts)
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		if _, err := server.client.Put(context.Background(), fmt.Sprintf("key-%d", i), "value"); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("acknowledged", i)
	}
}

func testOptions(dir string) Options {
	opts := NewOptions()
	opts.DataDir = dir
	opts.UnsafeNoFsync = true
	return *opts
}

func startServer(t *testing.T, opts Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// clientFor connects as the API server does: with Transport's endpoint and files.
func clientFor(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()
	tp := server.Transport()
	tlsConfig, err := transport.TLSInfo{CertFile: tp.CertFile, KeyFile: tp.KeyFile, TrustedCAFile: tp.TrustedCAFile}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: tp.ServerList, TLS: tlsConfig, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestStart_DataSurvivesRestartOnOtherPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "start")
	ports := map[string]bool{}
	var revision int64
	for run := range 4 {
		server := startServer(t, testOptions(dir))
		ports[server.Transport().ServerList[0]] = true
		client := clientFor(t, server)
		got, err := client.Get(t.Context(), "run-", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) != run || got.Header.Revision < revision {
			t.Fatalf("run %d: %d keys at revision %d, want %d keys, revision %d or more", run, len(got.Kvs), got.Header.Revision, run, revision)
		}
		put, err := client.Put(t.Context(), fmt.Sprintf("run-%d", run), "x")
		if err != nil {
			t.Fatal(err)
		}
		revision = put.Header.Revision
		server.Stop()
	}
	if len(ports) < 2 {
		t.Errorf("all runs used %v: the restart on another port was not tried", ports)
	}
}

func TestStart_RequiresClientCertificate(t *testing.T) {
	server := startServer(t, testOptions(t.TempDir()))
	if len(server.etcd.Peers) != 0 {
		t.Errorf("%d peer listeners, want none", len(server.etcd.Peers))
	}
	if len(server.etcd.Clients) != 2 {
		t.Errorf("%d listeners, want 2: gRPC and HTTP", len(server.etcd.Clients))
	}
	caPEM, err := os.ReadFile(server.Transport().TrustedCAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	own, err := tls.LoadX509KeyPair(server.Transport().CertFile, server.Transport().KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	otherPKI, err := createPKI(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.LoadX509KeyPair(otherPKI.clientCertFile, otherPKI.clientKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range server.etcd.Clients {
		address := listener.Addr().(*net.TCPAddr)
		if !address.IP.IsLoopback() {
			t.Errorf("listens on %s, which is not loopback", address)
		}
		for name, tc := range map[string]struct {
			certificates []tls.Certificate
			accepted     bool
		}{
			"none":    {},
			"foreign": {certificates: []tls.Certificate{foreign}},
			"own":     {certificates: []tls.Certificate{own}, accepted: true},
		} {
			err := handshake(address.String(), &tls.Config{RootCAs: roots, Certificates: tc.certificates, NextProtos: []string{"h2"}})
			if (err == nil) != tc.accepted {
				t.Errorf("%s with certificate %q: error %v, want accepted %v", address, name, err, tc.accepted)
			}
		}
	}
}

// handshake returns nil if the server at address accepts the connection. In TLS 1.3 the server verifies the client's certificate after the client's
// side of the handshake, so the first byte of its response is needed.
func handshake(address string, config *tls.Config) error {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		return err
	}
	// This is the preface of HTTP/2 with empty settings, to which both kinds of server respond with their own.
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func TestStart_FilePermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	server := startServer(t, testOptions(dir))
	before, err := os.ReadFile(server.Transport().KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if filepath.Base(filepath.Dir(path)) == "pki" {
			files = append(files, entry.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(files, " "), "ca.crt client.crt client.key server.crt server.key"; got != want {
		t.Errorf("pki holds %s, want %s", got, want)
	}
	server.Stop()
	again := startServer(t, testOptions(dir))
	after, err := os.ReadFile(again.Transport().KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) == string(after) {
		t.Error("the second start reused the client key of the first")
	}
}

func TestStart_SecondProcessFailsAndKillLosesNothing(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDataDir+"="+dir)
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })

	lines := bufio.NewScanner(stdout)
	acknowledged := -1
	read := func() bool {
		if !lines.Scan() {
			return false
		}
		if _, err := fmt.Sscanf(lines.Text(), "acknowledged %d", &acknowledged); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		return true
	}
	if !read() {
		t.Fatal("the child said nothing")
	}

	begin := time.Now()
	_, err = Start(t.Context(), testOptions(dir))
	if err == nil {
		t.Fatal("two processes run on one data directory")
	}
	for _, part := range []string{dir, fmt.Sprintf("process %d", child.Process.Pid), "--data-dir"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not tell %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %q, want one line at once", time.Since(begin), err)
	}

	for acknowledged < 50 && read() {
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for read() {
	}
	_ = child.Wait()

	server := startServer(t, testOptions(dir))
	got, err := clientFor(t, server).Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if got.Count < int64(acknowledged+1) {
		t.Errorf("%d writes acknowledged before the kill, %d found after it", acknowledged+1, got.Count)
	}
}

func TestStart_DamagedDataIsAnError(t *testing.T) {
	for name, pattern := range map[string]string{"database": "etcd/member/snap/db", "log": "etcd/member/wal/*.wal"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			server := startServer(t, testOptions(dir))
			if _, err := server.client.Put(t.Context(), "a", "b"); err != nil {
				t.Fatal(err)
			}
			server.Stop()
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("nothing to damage: %v", err)
			}
			for _, file := range files {
				if err := os.WriteFile(file, []byte(strings.Repeat("not what etcd wrote ", 10000)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			server, err = Start(t.Context(), testOptions(dir))
			if err == nil {
				server.Stop()
				t.Fatal("started on damaged data")
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("error %q does not name the directory", err)
			}
		})
	}
}

func TestStart_CancelledContextReleasesDirectory(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if server, err := Start(ctx, testOptions(dir)); err == nil {
		server.Stop()
		t.Fatal("started with a cancelled context")
	}
	deadline := time.Now().Add(await.Limit)
	for {
		server, err := Start(t.Context(), testOptions(dir))
		if err == nil {
			server.Stop()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestServer_OutlivesStartContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := Start(ctx, testOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	client := clientFor(t, server)
	cancel()
	if _, err := client.Put(t.Context(), "late", "write"); err != nil {
		t.Errorf("write after the context ended: %v", err)
	}
	if err := server.check(); err != nil {
		t.Error(err)
	}
}

func TestStop_IsIdempotentWithOpenWatches(t *testing.T) {
	opts := testOptions(t.TempDir())
	server := startServer(t, opts)
	client := clientFor(t, server)
	watch := client.Watch(t.Context(), "key", clientv3.WithCreatedNotify())
	<-watch

	begin := time.Now()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(server.Stop)
	}
	wg.Wait()
	if took := time.Since(begin); took > drainTimeout+3*time.Second {
		t.Errorf("stopping took %s with a watch open", took)
	}
	select {
	case <-server.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if err := server.check(); err == nil {
		t.Error("a stopped server is healthy")
	}
	startServer(t, opts) // the lock is free again
}

func TestTransport_RejectsPlaintext(t *testing.T) {
	server := startServer(t, testOptions(t.TempDir()))
	// TLS without any verification and without a certificate: the weakest client that speaks TLS at all.
	conn, err := grpc.NewClient(strings.TrimPrefix(server.Transport().ServerList[0], "https://"),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	for state := conn.GetState(); state != connectivity.TransientFailure; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection stays %s, want it refused", state)
		}
	}
}
