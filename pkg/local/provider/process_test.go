// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// providerEnv makes the test binary a provider in that directory.
const providerEnv = "TEST_LOCAL_PROVIDER_DIR"

// TestMain runs a provider of one cluster, or the tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(providerEnv); dir != "" {
		if err := runProvider(dir, types.UID(os.Getenv("UID_OF_CLUSTER"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	binaries.Moderate()
	os.Exit(m.Run())
}

func runProvider(dir string, uid types.UID) error {
	p, err := New(Options{Dir: dir, BinDir: os.Getenv("TEST_BIN_DIR"), UnsafeNoFsync: true, EndWithProvider: os.Getenv("END") != ""})
	if err != nil {
		return err
	}
	object := newCluster("blue")
	object.UID = uid
	fmt.Println("begins")
	return wait.PollUntilContextCancel(context.Background(), 10*time.Millisecond, true, func(ctx context.Context) (_ bool, err error) {
		if os.Getenv("REMOVE") != "" {
			_, err = p.Remove(ctx, object, clusterprovider.Profile{})
		} else {
			_, err = p.Ensure(ctx, object, clusterprovider.Profile{})
		}
		return false, err
	})
}

// providerCommand returns the command of a provider of one cluster as a process of its own.
func providerCommand(options Options, uid types.UID, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), append(env, providerEnv+"="+options.Dir, "TEST_BIN_DIR="+options.BinDir, "UID_OF_CLUSTER="+string(uid))...)
	return cmd
}

// TestKill kills providers while they create a cluster and while they delete it, at each step. They leave processes and their locks behind, so the
// test needs real ones.
func TestKill(t *testing.T) {
	options := testOptions(t)
	options.EndWithProvider = false
	object := newCluster("blue")
	t.Cleanup(func() { // in case of failures, since these processes do not die with the test
		p := &Provider{options: options}
		c := p.cluster(object.UID)
		for _, proc := range []localserver.Process{c.process(apiServer), c.process(controllerManager), p.etcdProcess()} {
			if err := proc.Kill(); err != nil {
				t.Error(err)
			}
		}
	})
	// killed kills a provider as soon as it has reached a step.
	killed := func(step string, reached func() bool, env ...string) {
		t.Helper()
		cmd := providerCommand(options, object.UID, env...)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("begins"))); err != nil {
			t.Errorf("the provider does not begin: %v", err)
		}
		err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, await.Limit, true, func(context.Context) (bool, error) { return reached(), nil })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || complaint.Len() > 0 {
			t.Errorf("at %s: %v, %s", step, err, complaint.String())
		}
		for _, program := range []string{"etcd", apiServer, controllerManager} {
			if pids := processes(t, program, options.Dir); len(pids) > 1 {
				t.Fatalf("after %s %s runs %d times", step, program, len(pids))
			}
		}
	}
	folder := filepath.Join("clusters", string(object.UID))
	for _, file := range []string{ // in the order in which they are created
		"", "owner", folder, folder + "/cluster.json", folder + "/pki/" + clientCA + ".crt", folder + "/" + controllerManager + ".kubeconfig", "etcd/pki", "etcd/etcd.json",
		"etcd/etcd.lock", "etcd/etcd.cmdline", "etcd/etcd.pid", folder + "/" + apiServer + ".lock", folder + "/" + apiServer + ".cmdline", folder + "/" + apiServer + ".pid",
		folder + "/" + controllerManager + ".lock", folder + "/" + controllerManager + ".pid",
	} {
		killed(file, func() bool { return exists(filepath.Join(options.Dir, file)) })
	}
	p := newProvider(t, options)
	ensure(t, p, object)
	only(t, p, apiServer, object.UID)
	only(t, p, controllerManager, object.UID)
	crashed[p] = true
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	ended := func(program string) func() bool {
		return func() bool {
			running, err := p.cluster(object.UID).process(program).Running()
			return err == nil && !running
		}
	}
	killed("the beginning", func() bool { return true }, "REMOVE=yes")
	killed("the end of "+controllerManager, ended(controllerManager), "REMOVE=yes")
	killed("the end of "+apiServer, ended(apiServer), "REMOVE=yes")
	killed("the end", func() bool { return !exists(filepath.Join(options.Dir, folder)) }, "REMOVE=yes")
	p = newProvider(t, options)
	if gone, err := p.Remove(t.Context(), object, clusterprovider.Profile{}); err != nil || !gone {
		t.Fatalf("gone: %t, %v", gone, err)
	}
	nothingLeft(t, p, object)
}

func TestEndWithProvider(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes with the one that has started them")
	}
	options := testOptions(t)
	cmd := providerCommand(options, uuid.NewUUID(), "END=yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run := func(want int) func() bool {
		return func() bool {
			return len(processes(t, "etcd", options.Dir)) == want && len(processes(t, apiServer, options.Dir)) == want
		}
	}
	eventually(t, "the processes run", run(1))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the processes end with the provider", run(0))
}

// TestSupervise_ReportsExitReason starts a process that fails.
func TestSupervise_ReportsExitReason(t *testing.T) {
	p := &Provider{}
	proc := localserver.Process{Dir: t.TempDir(), Name: "broken", Tied: true}
	args := []string{"-c", "echo 'Error: no such flag' >&2; echo usage >&2; exit 1"}
	for range 2 {
		if err := p.supervise(proc, "/bin/sh", args); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process ends", func() bool { running, err := proc.Running(); return err == nil && !running })
		if err := p.supervise(proc, "/bin/sh", args); err == nil || !strings.Contains(err.Error(), "Error: no such flag") {
			t.Errorf("the exit of the process is reported as: %v", err)
		}
	}
}

// TestEnsure_UID: a UID becomes the name of a folder that is deleted in the end.
func TestEnsure_UID(t *testing.T) {
	p := &Provider{options: Options{Dir: filepath.Join(t.TempDir(), "provider"), BinDir: t.TempDir()}}
	for _, uid := range []types.UID{"", ".", "..", "../../x", "a/b", "a\x00b", "a\n"} {
		object := newCluster("blue")
		object.UID = uid
		if _, err := p.Ensure(t.Context(), object, clusterprovider.Profile{}); err == nil || !strings.Contains(err.Error(), "the UID") {
			t.Errorf("Ensure of %q: %v", uid, err)
		}
		gone, err := p.Remove(t.Context(), object, clusterprovider.Profile{})
		if gone || err == nil || !strings.Contains(err.Error(), "the UID") {
			t.Errorf("Remove of %q: %t, %v", uid, gone, err)
		}
	}
}

// TestDecide_PortInUse has another program on the port of a cluster.
func TestDecide_PortInUse(t *testing.T) {
	p, object := newProvider(t, testOptions(t)), newCluster("blue")
	c := p.cluster(object.UID)
	before, _, err := p.decide(t.Context(), c, object)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := p.decide(t.Context(), c, object); err != nil || again != before {
		t.Errorf("%+v has become %+v: %v", before, again, err)
	}
	l, err := net.Listen("tcp", localserver.Address(before.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	after, _, err := p.decide(t.Context(), c, object)
	if err != nil || after.Port == before.Port || after.Port < localserver.FirstPort || after.Port > localserver.LastPort {
		t.Errorf("instead of %d the port is %d: %v", before.Port, after.Port, err)
	}
	before.Served = true
	if err := c.write(before); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.decide(t.Context(), c, object); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("the address of a cluster that is known to others: %v", err)
	}
}

// TestOwn_RejectsClustersOfOtherProvider: to a provider of another hub, all clusters of this one would be leftovers.
func TestOwn_RejectsClustersOfOtherProvider(t *testing.T) {
	dir, object := t.TempDir(), newCluster("blue")
	owned := func(owner string) error {
		t.Helper()
		p, err := New(Options{Dir: dir, BinDir: "unused", Owner: owner})
		if err != nil {
			return err
		}
		return errors.Join(p.own(t.Context()), p.Close())
	}
	if err := errors.Join(owned("one"), owned("two"), owned("one")); err != nil {
		t.Errorf("of an empty directory: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "clusters", string(object.UID)), 0o700); err != nil {
		t.Fatal(err)
	}
	want := dir + " has clusters of the provider one: specify another directory"
	if err := owned("two"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("of another one's directory: %v", err)
	}
	if err := owned("one"); err != nil {
		t.Errorf("of its own directory: %v", err)
	}
}
