// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// The tests of a folder share a hub of processes of this machine, or one whose servers are pods of a management cluster. The same tests
// run on both, as a user cannot tell one from the other. A detached hub takes long to start, so that several folders share one, one after the
// other: test/detachedhub starts it, and runs their tests with its folder in the environment.
const detachedHubDir = "CLUSTERHUB_TEST_DETACHED_HUB"

// isDetached is whether the hub that the tests of this folder share is a detached one.
func isDetached() bool { return os.Getenv(detachedHubDir) != "" }

// OnlyLocal skips a test on a detached hub, for what it needs: processes of this machine, which it starts, ends, or gives flags of its own.
func OnlyLocal(t *testing.T, needs string) {
	t.Helper()
	if isDetached() {
		t.Skipf("not on a detached hub: it needs %s", needs)
	}
}

// detachedConfig is that of the detached hub. It has the flags of all folders whose tests run on it.
func detachedConfig(dir string) localhub.Config {
	config := HubConfig(dir)
	config.Plain = true
	config.Replicas = 2 // as the hubs of this machine: what tests do by two replicas, they do by two addresses of one
	config.HubAPIServerArgs = []string{"--agent-writes-burst=100000"}
	return config
}

// openDetached returns the detached hub in a folder. It fails if the hub lacks what a test's folder asks of its hub.
func openDetached(dir string, changes []func(*localhub.Config)) (*localhub.Hub, error) {
	has, wants := detachedConfig(dir), HubConfig(dir)
	for _, change := range changes {
		change(&wants)
	}
	if !serves(has, wants) {
		return nil, fmt.Errorf("the detached hub has not the flags that these tests ask for, %q %q %q: give it those in detachedConfig, if the other tests bear them",
			wants.FrontArgs, wants.HubAPIServerArgs, wants.HubControllerManagerArgs)
	}
	return localhub.Open(has)
}

// serves reports whether a hub has the flags that another one is to have.
func serves(has, wants localhub.Config) bool {
	lacks := func(has, wants []string) bool {
		return slices.ContainsFunc(wants, func(flag string) bool { return !slices.Contains(has, flag) })
	}
	return !lacks(has.FrontArgs, wants.FrontArgs) && !lacks(has.HubAPIServerArgs, wants.HubAPIServerArgs) &&
		slices.Equal(has.HubControllerManagerArgs, wants.HubControllerManagerArgs)
}

// WithDetachedHub runs a command, such as go test, whose tests share a detached hub, and returns what the process is to exit with. It
// begins in the root of the repository, and so does the command.
func WithDetachedHub(command ...string) (result int) {
	defer func() {
		if !last.end() && result == 0 {
			result = 1
		}
	}()
	if err := os.Chdir(filepath.Join("test", "e2e", "harness")); err != nil { // Root is as the tests see it
		last.Fatal(err)
	}
	config := detachedConfig(filepath.Join(last.TempDir(), "hub"))
	m := StartManagement(last, func(c *kubelet.Config) {
		c.ArgsOf[deploy.APIServer] = append(c.ArgsOf[deploy.APIServer], config.HubAPIServerArgs...)
		c.ArgsOf[deploy.Manager] = config.HubControllerManagerArgs
	})
	m.InstallOperator(last)
	config.FrontArgs = append(config.FrontArgs, m.Node.Egress()...)
	hub, err := localhub.Start(last.Context(), config)
	if err != nil {
		last.Fatal(err)
	}
	last.Cleanup(hub.Kill)
	// Nothing approves certificates, as there is no registration.
	m.MakeHub(last, "shared", hub, "manual-certificates")

	cmd := exec.CommandContext(last.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = Root, os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), detachedHubDir+"="+hub.Dir())
	if err := cmd.Run(); err != nil {
		last.Error(err) // so that the pods say what has happened
	}
	// What a server lacks it would say, and try again for ever. Namespaces that end take no new events.
	for namespace, pod := range map[string]string{ServerNamespace("shared"): deploy.Manager, "clusterhub-operator": "hub-operator"} {
		logs := m.Node.Logs(namespace, pod)
		if logs == "" {
			last.Errorf("%s says nothing", pod)
		}
		for line := range strings.Lines(logs) {
			if strings.Contains(line, "forbidden") && !strings.Contains(line, "because it is being terminated") {
				last.Errorf("%s lacks a right: %s", pod, line)
			}
		}
	}
	return 0
}
