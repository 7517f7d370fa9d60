// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// Overlay returns the folder of an overlay of artifacts/deploy.
func Overlay(name string) string { return filepath.Join(Root, "artifacts", "deploy", name) }

// Kubectl runs kubectl on the shared hub and returns its output.
func Kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	return kubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectl runs kubectl on the shared hub and fails the test if kubectl fails.
func MustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return MustKubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectlOf runs kubectl on any hub and fails the test if kubectl fails.
func MustKubectlOf(t *testing.T, h *localhub.Instance, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectlOf(t, h, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func kubectlOf(t *testing.T, h *localhub.Instance, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := h.Kubectl(t.Context(), args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Contains fails the test unless out contains all parts.
func Contains(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
}

// ApplyFile applies a file of testdata as admin, and deletes its objects when the test ends.
func ApplyFile(t *testing.T, file string) {
	t.Helper()
	MustKubectl(t, "", "apply", "-f", "testdata/"+file)
	t.Cleanup(func() {
		_ = Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-f", "testdata/"+file).Run()
	})
}

// Plugin runs kubectl-hub as a user who has the kubeconfig.
type Plugin struct{ Kubeconfig string }

// Command returns a command of the plugin with its own home directory.
func (p Plugin) Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Binary(t, "kubectl-hub"), args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }),
		"KUBECONFIG="+p.Kubeconfig, "HOME="+t.TempDir())
	return cmd
}

// Run runs a command of the plugin.
func (p Plugin) Run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return Begin(t, p.Command(t, args...)).End()
}

// Running is a command that has started.
type Running struct {
	// Ended is closed when the command ends.
	Ended       chan struct{}
	out, errOut bytes.Buffer
	err         error
}

// Begin starts a command, for a test that acts while the command runs. The command is stopped when the test ends.
func Begin(t *testing.T, cmd *exec.Cmd) *Running {
	t.Helper()
	r := &Running{Ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.out, &r.errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-r.Ended })
	go func() {
		defer close(r.Ended)
		r.err = cmd.Wait()
	}()
	return r
}

// End waits until the command ends.
func (r *Running) End() (stdout, stderr string, err error) {
	<-r.Ended
	return r.out.String(), r.errOut.String(), r.err
}

// Must is Run for a command that must succeed.
func (p Plugin) Must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := p.Run(t, args...)
	if err != nil {
		t.Fatalf("kubectl hub %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

// Joining is the output of init and of get token.
type Joining struct {
	Token   string    `json:"hub-token"`
	Server  string    `json:"hub-apiserver"`
	CA      string    `json:"ca-data"`
	Expires time.Time `json:"expires"`
	Command string    `json:"join-command"`
}

// Joining runs a command and returns its output.
func (p Plugin) Joining(t *testing.T, args ...string) (j Joining) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.Must(t, append(args, "-o", "json")...)), &j); err != nil {
		t.Fatal(err)
	}
	return j
}

// Args returns the arguments of the printed command, as a shell would pass them.
func (j Joining) Args(t *testing.T, name string) []string {
	t.Helper()
	rest, ok := strings.CutPrefix(j.Command, "kubectl hub ")
	if !ok {
		t.Fatalf("the join command is %q", j.Command)
	}
	return strings.Fields(strings.ReplaceAll(rest, "<cluster_name>", name))
}

// WithContexts writes one kubeconfig with a context for each of several clusters, as users have it.
func WithContexts(t *testing.T, clusters map[string]*localhub.Instance) string {
	t.Helper()
	all := clientcmdapi.NewConfig()
	for name, h := range clusters {
		config := Must(clientcmd.LoadFromFile(h.AdminKubeconfig()))(t)
		current := config.Contexts[config.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*all, file); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
