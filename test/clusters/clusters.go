// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusters starts real clusters for tests: etcd, kube-apiserver and kube-controller-manager, without nodes.
package clusters

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localprovider "github.com/clusterhub/clusterhub/pkg/local/provider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// Shared are the clusters that the tests of one package share: starting one takes longer than most tests.
type Shared struct {
	lock     sync.Mutex
	dir      string
	provider *localprovider.Provider
	started  map[string]*v1alpha1.Cluster
	configs  map[string]*rest.Config
}

// Main runs the tests of a package, and then stops the clusters they have started.
func (s *Shared) Main(m *testing.M) int {
	binaries.Moderate()
	dir, err := os.MkdirTemp("", "clusters-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.dir = dir
	defer os.RemoveAll(dir)
	defer func() {
		for _, object := range s.started {
			_, _ = s.provider.Remove(context.Background(), object, clusterprovider.Profile{})
		}
		if s.provider != nil {
			_ = s.provider.Close()
		}
	}()
	return m.Run()
}

// Config returns an admin's configuration for the cluster of that name, without a limit of requests. The first call starts the cluster.
func (s *Shared) Config(t testing.TB, name string) *rest.Config {
	t.Helper()
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.configs[name] == nil {
		config, err := s.start(t, name)
		if err != nil {
			t.Fatal(err)
		}
		if s.configs == nil {
			s.configs = map[string]*rest.Config{}
		}
		s.configs[name] = config
	}
	config := rest.CopyConfig(s.configs[name])
	config.QPS = -1
	return config
}

func (s *Shared) start(t testing.TB, name string) (*rest.Config, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if s.provider == nil {
		options := localprovider.Options{Dir: s.dir, BinDir: binaries.Kubernetes(t, filepath.Join(s.dir, "bin")), EndWithProvider: true, UnsafeNoFsync: true}
		var err error
		s.provider, err = localprovider.New(options)
		if err != nil {
			return nil, err
		}
		s.started = map[string]*v1alpha1.Cluster{}
	}
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uuid.NewUUID()}}
	s.started[name] = object
	// Errors are retried, as the controller of Clusters does: on a busy machine a process may not start in time, or find its port taken.
	var pending error
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		state, err := s.provider.Ensure(ctx, object, clusterprovider.Profile{})
		pending = err
		if err == nil && !state.Ready {
			pending = errors.New(state.Info)
		}
		return pending == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the cluster is not ready: %w (%w)", err, pending)
	}
	return s.provider.Connect(ctx, object)
}

// clientCA is the name that the local provider gives to its CA of clients.
const clientCA = "client-ca"

// ClientCertificate returns a certificate, and its key, by which the cluster of that name authenticates a user.
func (s *Shared) ClientCertificate(t testing.TB, name string, user pkix.Name) (certificate, key []byte) {
	t.Helper()
	s.Config(t, name)
	var pki string
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == clientCA+".key" && strings.Contains(path, string(s.started[name].UID)) {
			pki = filepath.Dir(path)
		}
		return err
	})
	if err != nil || pki == "" {
		t.Fatalf("there is no CA of clients in %s: %v", s.dir, err)
	}
	certs := localserver.Certificates{Dir: pki}
	authority, err := certs.Authority(clientCA, "")
	if err != nil {
		t.Fatal(err)
	}
	file := "test-" + string(uuid.NewUUID())
	if err := authority.Client(file, user); err != nil {
		t.Fatal(err)
	}
	certificate, err = os.ReadFile(certs.Cert(file))
	if err != nil {
		t.Fatal(err)
	}
	key, err = os.ReadFile(certs.Key(file))
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
