// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the tests of a whole hub: real etcd, real kube-apiserver in front, two replicas of hub-apiserver,
// real kubectl and client libraries.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// hub is what all tests share. Tests name what they make by their own name, and leave the hub's processes alone; a test
// that does not starts a hub of its own.
var hub *localhub.Hub

// Tests run at the same time, and share the scheme.
func init() { utilruntime.Must(corev1.AddToScheme(scheme.Scheme)) }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(churnEnv) != "" {
		return m.Run() // a client of another process's hub
	}
	ctrl.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "clusterhub-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config := hubConfig(dir)
	config.ExternalEtcd, config.Replicas = true, 2
	hub, err = localhub.Start(ctx, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "The hub for the tests cannot be started:", err)
		return 1
	}
	result := m.Run()
	hub.Stop()
	if result == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintf(os.Stderr, "The logs of the hub are kept in %s\n", filepath.Join(dir, "logs"))
	}
	return result
}

func hubConfig(dir string) localhub.Config {
	bin := os.Getenv("TEST_BIN_DIR")
	if bin == "" {
		bin = "../../_output/bin"
	}
	return localhub.Config{
		Dir: dir, BinDir: bin, Root: "../..", UnsafeNoFsync: true,
		// The tests of other things than registration are alone with their clusters.
		HubControllerManagerArgs: []string{"--registration-drivers=", "--access-controllers="},
	}
}

// ownHub starts a hub for one test.
func ownHub(t *testing.T, adapt func(*localhub.Config)) *localhub.Hub {
	t.Helper()
	config := hubConfig(t.TempDir())
	config.Log = t.Logf
	if adapt != nil {
		adapt(&config)
	}
	h, err := localhub.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	return h
}
