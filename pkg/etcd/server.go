// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
)

const (
	// startTimeout bounds a start, including opening a database of many GiB.
	startTimeout = 60 * time.Second
	// drainTimeout is the time for which Stop waits for open requests and watches before it terminates them.
	drainTimeout = 2 * time.Second
	// portAttempts is the number of ports that are tried if another process takes the chosen one first.
	portAttempts = 5
)

// Server is a running embedded etcd. It ends with Stop only, so that it can outlive the API server's shutdown.
type Server struct {
	opts      Options
	lock      *fileutil.LockedFile
	etcd      *embed.Etcd
	client    *clientv3.Client // in process, without a socket
	grpc      *atomic.Pointer[grpc.Server]
	transport storagebackend.TransportConfig

	full       atomic.Bool // writes are rejected, until space is reclaimed
	reclaimed  int64       // the revision of the last attempt to reclaim space
	background sync.WaitGroup

	stopping chan struct{} // closed when Stop starts
	stopped  chan struct{} // closed when Stop has finished
	stopOnce sync.Once
}

// Start runs etcd on opts.DataDir and returns once it serves, after 60 seconds at most. ctx bounds the start only; the server runs until Stop.
//
// It fails at once if another process uses the data directory, and with an error that names the directory if its content cannot be read.
func Start(ctx context.Context, opts Options) (*Server, error) {
	server, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	return server, nil
}

func start(ctx context.Context, opts Options) (*Server, error) {
	if err := utilerrors.NewAggregate(opts.Validate()); err != nil {
		return nil, err
	}
	dataDir, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, err
	}
	opts.DataDir = dataDir
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create --data-dir: %w", err)
	}
	lock, err := acquireLock(dataDir)
	if err != nil {
		return nil, err
	}
	if err := checkDatabase(filepath.Join(dataDir, "etcd", "member", "snap", "db")); err != nil {
		_ = lock.Close()
		return nil, err
	}
	s := &Server{
		opts:     opts,
		lock:     lock,
		grpc:     &atomic.Pointer[grpc.Server]{},
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	certificates, err := createPKI(filepath.Join(dataDir, "pki"))
	if err != nil {
		_ = lock.Close()
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	address, err := s.launch(ctx, certificates)
	if err != nil {
		return nil, err
	}
	s.transport = storagebackend.TransportConfig{
		ServerList:    []string{"https://" + address},
		CertFile:      certificates.clientCertFile,
		KeyFile:       certificates.clientKey,
		TrustedCAFile: certificates.caFile,
	}
	s.client = v3client.New(s.etcd.Server)
	go s.watchErrors()
	if s.isFull() { // the keeper makes room while the server can be read, which may take longer than the start timeout
		s.noteFull(ctx)
	}
	background := context.WithoutCancel(ctx)
	s.background.Go(func() { s.reclaimWhenFull(background) })
	return s, nil
}

// launch starts etcd and waits until it is ready. It returns the address on which etcd serves gRPC. If it fails, it has released the lock, or
// releases it as soon as etcd releases the directory.
func (s *Server) launch(ctx context.Context, certificates pki) (string, error) {
	for attempt := 1; ; attempt++ {
		address, err := freeAddress()
		if err != nil {
			_ = s.lock.Close()
			return "", err
		}
		cfg, err := embedConfig(s.opts, certificates, address, func(gs *grpc.Server) { s.grpc.Store(gs) })
		if err != nil {
			_ = s.lock.Close()
			return "", err
		}
		done := make(chan launched, 1)
		go runEtcd(ctx, cfg, done)
		select {
		case result := <-done:
			if result.err == nil {
				s.etcd = result.etcd
				return address, nil
			}
			if errors.Is(result.err, syscall.EADDRINUSE) && attempt < portAttempts {
				continue
			}
			_ = s.lock.Close()
			return "", result.err
		case <-ctx.Done():
			// etcd cannot be interrupted while it opens its files; it is closed when it is done.
			go func() {
				if result := <-done; result.etcd != nil {
					result.etcd.Close()
				}
				_ = s.lock.Close()
			}()
			return "", startCut(ctx, s.opts.DataDir)
		}
	}
}

// launched is the outcome of one attempt to start etcd: an etcd that is ready, or an error.
type launched struct {
	etcd *embed.Etcd
	err  error
}

func runEtcd(ctx context.Context, cfg *embed.Config, done chan<- launched) {
	defer func() {
		// etcd panics on files that it cannot parse.
		if problem := recover(); problem != nil {
			done <- launched{err: fmt.Errorf("the data in %s cannot be read (%v): restore it from a backup", cfg.Dir, problem)}
		}
	}()
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		done <- launched{err: fmt.Errorf("cannot start on %s: %w", cfg.Dir, err)}
		return
	}
	select {
	case <-etcd.Server.ReadyNotify():
		done <- launched{etcd: etcd}
	case err := <-etcd.Err():
		etcd.Close()
		done <- launched{err: fmt.Errorf("stopped while starting on %s: %w", cfg.Dir, err)}
	case <-etcd.Server.StopNotify():
		etcd.Close()
		done <- launched{err: fmt.Errorf("stopped while starting on %s: its log above says why", cfg.Dir)}
	case <-ctx.Done():
		etcd.Close()
		done <- launched{err: startCut(ctx, cfg.Dir)}
	}
}

// startCut returns the error of a start that ctx ended.
func startCut(ctx context.Context, dir string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not ready in time (%s) on %s: its log above may say why; look for a slow or full disk", startTimeout, dir)
	}
	return fmt.Errorf("not started: %w", context.Cause(ctx))
}

// watchErrors logs errors of a running server. Once the server has stopped, the health check fails.
func (s *Server) watchErrors() {
	for {
		select {
		case <-s.stopping:
			return
		case err, open := <-s.etcd.Err():
			if !open {
				return
			}
			if err != nil {
				klog.Background().Error(err, "The embedded etcd failed", "dataDir", s.opts.DataDir)
			}
		}
	}
}

// Transport returns the endpoint and the files of the client certificate, its key and the CA, to copy into an etcd
// storage configuration. They are valid until Stop.
func (s *Server) Transport() storagebackend.TransportConfig {
	t := s.transport
	t.ServerList = append([]string(nil), t.ServerList...)
	return t
}

// Connect returns a client that calls the server in this process: nothing is encoded, encrypted, or sent over a socket. The caller must close it
// before Stop.
func (s *Server) Connect(storagebackend.TransportConfig) (*kubernetes.Client, error) {
	client := &kubernetes.Client{Client: v3client.New(s.etcd.Server)}
	client.Kubernetes = client
	return client, nil
}

// Done is closed when the server has stopped, by Stop or by a failure.
func (s *Server) Done() <-chan struct{} {
	return s.etcd.Server.StopNotify()
}

// Stop closes the server and releases the data directory; later and concurrent calls wait for the first. Open requests get 2 seconds. Close the API
// server's storage before, so that there are no open requests.
func (s *Server) Stop() {
	s.stopOnce.Do(func() {
		defer close(s.stopped)
		close(s.stopping)
		s.background.Wait() // the database must not be closed during a defragmentation
		if gs := s.grpc.Load(); gs != nil {
			// etcd itself waits 7 seconds for watches, which never end on their own.
			cutOff := time.AfterFunc(drainTimeout, gs.Stop)
			defer cutOff.Stop()
		}
		_ = s.client.Close()
		s.etcd.Close()
		_ = s.lock.Close()
	})
	<-s.stopped
}
