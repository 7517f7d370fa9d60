// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness is what the end-to-end tests share: hubs of real parts (etcd, kube-apiserver in front, hub-apiserver,
// controllers), clients and processes for them, and objects that tests of several folders make. The tests are beside it, one
// folder for each capability. What only one folder needs is there and not here.
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
	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// Root is that of the repository, as the tests of each folder see it.
const Root = "../../.."

// imagesDir names the variable that has the folder of unpacked images in which our servers run, if they are to: see hack/test.sh.
const imagesDir = "CLUSTERHUB_TEST_IMAGES"

// Tests run in parallel, and share the scheme.
func init() { utilruntime.Must(corev1.AddToScheme(scheme.Scheme)) }

// shared is the hub that the tests of a folder share, with two replicas of hub-apiserver. A detached one has no dir here: see detachedHubDir.
var shared struct {
	once    sync.Once
	changes []func(*localhub.Config)
	dir     string
	hub     *localhub.Hub
	err     error
}

// Hub returns the hub that the tests of a folder share, and starts it for the first of them. The test runs in parallel with others from here
// on, unless it is in alone. Tests name what they make by their own name, and do not stop the hub's processes: a test that does takes a hub by LendHub.
func Hub(t *testing.T) *localhub.Hub {
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
	if shared.hub, err = openWorld(os.Getenv(worldDir), shared.changes); shared.hub != nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if shared.dir, err = os.MkdirTemp("", "clusterhub-e2e-"); err != nil {
		return err
	}
	shared.hub, err = localhub.Start(ctx, sharedConfig(shared.dir, shared.changes))
	return err
}

// sharedConfig returns the configuration of the hub that the tests of a folder share.
func sharedConfig(dir string, changes []func(*localhub.Config)) localhub.Config {
	config := HubConfig(dir)
	config.ExternalEtcd, config.Replicas = true, 2
	for _, change := range changes {
		change(&config)
	}
	return config
}

// Run is the TestMain of each folder: it runs the tests and returns what the process is to exit with. It ends the shared hub,
// and keeps its logs if a test has failed. The changes are what a folder needs of the shared hub.
func Run(m *testing.M, changes ...func(*localhub.Config)) int {
	shared.changes = changes
	binaries.Moderate()
	if isDetached() || os.Getenv(worldDir) != "" { // what other runs have made may not have been deleted yet
		sequence.Store(int64(os.Getpid()) * 1000)
	}
	ctrl.SetLogger(klog.Background())
	result := m.Run()
	if result != 0 {
		last.Error("a test has failed") // so that it says what has happened
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

// HubConfig is that of a hub in a folder, with the binaries of the build.
func HubConfig(dir string) localhub.Config {
	bin := os.Getenv("TEST_BIN_DIR")
	if bin == "" {
		bin = filepath.Join(Root, "_output", "bin")
	}
	return localhub.Config{
		Dir: dir, BinDir: bin, ImagesDir: ImagesDir(), UnsafeNoFsync: true,
		// The tests of other things than registration are alone with their clusters.
		HubControllerManagerArgs: []string{"--registration-drivers=", "--access-controllers="},
	}
}

// ImagesDir is where the images are in which our servers and pods run, or empty if they do not.
func ImagesDir() string { return os.Getenv(imagesDir) }

// BinDir is where the binaries of the build are.
func BinDir(t *testing.T) string {
	t.Helper()
	return Must(filepath.Abs(HubConfig("").BinDir))(t)
}

// Binary is one of them.
func Binary(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(BinDir(t), name)
}

// OwnHub starts a hub for one test, of processes of this machine. The test runs in parallel with others, as with Hub; the list owners has the
// reason why it does not use the shared hub.
func OwnHub(t *testing.T, adapt func(*localhub.Config)) *localhub.Hub {
	t.Helper()
	return OwnHubs(t, adapt)[0]
}

// OwnHubs starts hubs for one test, all at one time.
func OwnHubs(t *testing.T, adapt ...func(*localhub.Config)) []*localhub.Hub {
	t.Helper()
	parallel(t)
	hubs, errs := make([]*localhub.Hub, len(adapt)), make([]error, len(adapt))
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
