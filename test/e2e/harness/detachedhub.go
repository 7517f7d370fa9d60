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
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// detachedHubDir is the environment variable with the folder of a detached hub. The tests of a folder share either a hub of processes of this
// machine, or a hub whose servers are pods of a management cluster. The same tests run on both, as the two do not differ for a user. A detached hub
// starts slowly, so several folders share one in sequence: test/detachedhub starts it, and runs their tests with its folder in the environment.
const detachedHubDir = "CLUSTERHUB_TEST_DETACHED_HUB"

// isDetached reports whether the shared hub of this folder's tests is detached.
func isDetached() bool { return os.Getenv(detachedHubDir) != "" }

// OnlyLocal skips a test on a detached hub because of what it needs: processes of this machine that it starts, stops, or configures with its own
// flags.
func OnlyLocal(t *testing.T, needs string) {
	t.Helper()
	if isDetached() {
		t.Skipf("not on a detached hub: it needs %s", needs)
	}
}

// detachedConfig returns the configuration of the detached hub, with the flags of all folders whose tests run on it.
func detachedConfig(dir string) localhub.Options {
	config := HubConfig(dir)
	config.Plain = true
	config.Replicas = 2 // as the local hubs: two replicas for the tests are two addresses of one pod
	config.HubAPIServerArgs = []string{"--agent-writes-burst=100000"}
	return config
}

// openDetached returns the detached hub in a folder. It fails if the hub lacks a setting that the tests of a folder require.
func openDetached(dir string, changes []func(*localhub.Options)) (*localhub.Instance, error) {
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

// serves reports whether a hub has the flags that a different hub requires.
func serves(has, wants localhub.Options) bool {
	lacks := func(has, wants []string) bool {
		return slices.ContainsFunc(wants, func(flag string) bool { return !slices.Contains(has, flag) })
	}
	return !lacks(has.FrontArgs, wants.FrontArgs) && !lacks(has.HubAPIServerArgs, wants.HubAPIServerArgs) &&
		slices.Equal(has.HubControllerManagerArgs, wants.HubControllerManagerArgs)
}

// WithDetachedHub runs a command, such as go test, whose tests share a detached hub, and returns the exit code of the process. It starts in the root
// of the repository, as does the command.
func WithDetachedHub(command ...string) (result int) {
	defer func() {
		if !last.end() && result == 0 {
			result = 1
		}
	}()
	if err := os.Chdir(filepath.Join("test", "e2e", "harness")); err != nil { // Root is relative to the folder of the tests
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
		last.Error(err) // so that the logs of the pods are printed
	}
	// A server that lacks a right would log this and retry forever. Namespaces that are being deleted accept no new events.
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
