// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness has the shared parts of the end-to-end tests: hubs of real components (etcd, kube-apiserver in front, hub-apiserver, controllers),
// clients and processes for them, and objects that tests of several folders create. The tests are in the sibling folders, one for each capability.
// Helpers of a single folder belong to that folder.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// Root is the root of the repository, relative to the tests of each folder.
const Root = "../../.."

// imagesDir is the environment variable with the folder of unpacked images in which our servers run, if set. See hack/test.sh.
const imagesDir = "CLUSTERHUB_TEST_IMAGES"

// Tests run in parallel, and share the scheme.
func init() { utilruntime.Must(corev1.AddToScheme(scheme.Scheme)) }

// shared is the hub that the tests of a folder share, with two replicas of hub-apiserver. A detached hub has no dir here: see detachedHubDir.
var shared struct {
	once    sync.Once
	changes []func(*localhub.Options)
	dir     string
	hub     *localhub.Instance
	err     error
}

// Hub returns the hub that the tests of a folder share, and starts it for the first of them. The test runs in parallel with others from here on,
// unless alone lists it. Tests name their objects by unique names, and do not stop the processes of the hub: a test that does calls LendHub.
func Hub(t *testing.T) *localhub.Instance {
	t.Helper()
	parallel(t)
	shared.once.Do(func() { shared.err = startShared() })
	if shared.err != nil {
		t.Fatalf("the hub for the tests cannot be started: %v", shared.err)
	}
	return shared.hub
}

func startShared() (err error) {
	if isDetached() {
		shared.hub, err = openDetached(os.Getenv(detachedHubDir), shared.changes)
		return err
	}
	shared.hub, err = openWorld(os.Getenv(worldDir), shared.changes)
	if shared.hub != nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	shared.dir, err = os.MkdirTemp("", "clusterhub-e2e-")
	if err != nil {
		return err
	}
	shared.hub, err = localhub.Start(ctx, sharedConfig(shared.dir, shared.changes))
	return err
}

// sharedConfig returns the configuration of the hub that the tests of a folder share.
func sharedConfig(dir string, changes []func(*localhub.Options)) localhub.Options {
	config := HubConfig(dir)
	config.ExternalEtcd, config.Replicas = true, 2
	for _, change := range changes {
		change(&config)
	}
	return config
}

// Run is the TestMain of each folder: it runs the tests and returns the exit code of the process. It stops the shared hub, and retains its logs if a
// test failed. The changes adapt the shared hub to the folder.
func Run(m *testing.M, changes ...func(*localhub.Options)) int {
	shared.changes = changes
	binaries.Moderate()
	if isDetached() || os.Getenv(worldDir) != "" { // deletions of earlier runs may not be complete
		sequence.Store(int64(os.Getpid()) * 1000)
	}
	ctrl.SetLogger(klog.Background())
	result := m.Run()
	if result != 0 {
		last.Error("a test has failed") // so that the logs are printed
	}
	if !last.end() && result == 0 {
		result = 1
	}
	if shared.hub != nil && shared.dir != "" {
		shared.hub.Kill()
	}
	switch {
	case shared.dir == "":
	case result == 0:
		_ = os.RemoveAll(shared.dir)
	default:
		fmt.Fprintf(os.Stderr, "The logs of the hub are kept in %s\n", filepath.Join(shared.dir, "logs"))
	}
	return result
}

// HubConfig returns the configuration of a hub in a folder, with the binaries of the build.
func HubConfig(dir string) localhub.Options {
	bin := os.Getenv("TEST_BIN_DIR")
	if bin == "" {
		bin = filepath.Join(Root, "_output", "bin")
	}
	return localhub.Options{
		Dir: dir, BinDir: bin, ImagesDir: ImagesDir(), UnsafeNoFsync: true,
		// Tests of other areas than registration run without its controllers.
		HubControllerManagerArgs: []string{"--registration-drivers=", "--access-controllers="},
	}
}

// ImagesDir returns the folder of the images in which our servers and pods run, or "" if they do not run in images.
func ImagesDir() string { return os.Getenv(imagesDir) }

// BinDir returns the folder of the binaries of the build.
func BinDir(t *testing.T) string {
	t.Helper()
	return Must(filepath.Abs(HubConfig("").BinDir))(t)
}

// Binary returns the path of a binary of the build.
func Binary(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(BinDir(t), name)
}

// OwnHub starts a hub of processes of this machine for one test. The test runs in parallel with others, as with Hub. The list owners has the reason
// why it does not use the shared hub.
func OwnHub(t *testing.T, adapt func(*localhub.Options)) *localhub.Instance {
	t.Helper()
	return OwnHubs(t, adapt)[0]
}

// OwnHubs starts several hubs for one test concurrently.
func OwnHubs(t *testing.T, adapt ...func(*localhub.Options)) []*localhub.Instance {
	t.Helper()
	parallel(t)
	hubs, errs := make([]*localhub.Instance, len(adapt)), make([]error, len(adapt))
	var starting sync.WaitGroup
	for i, change := range adapt {
		config := HubConfig(t.TempDir())
		config.Log = t.Logf
		if change != nil {
			change(&config)
		}
		if !config.Plain {
			OnlyLocal(t, "a hub of its own, whose processes it can start and end")
		}
		starting.Go(func() { hubs[i], errs[i] = localhub.Start(t.Context(), config) })
	}
	starting.Wait()
	for i, h := range hubs {
		if errs[i] == nil {
			t.Cleanup(h.Kill)
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return hubs
}
