// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// process is a hub-apiserver of one test with an embedded etcd. It uses the shared hub's front, which does not know it: such a test costs only the
// start of this process.
type process struct {
	hub   *localhub.Instance
	cmd   *exec.Cmd
	port  int
	out   harness.Buffer
	ended chan struct{}
}

func startProcess(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	p := &process{hub: harness.Hub(t), port: harness.FreePort(t), ended: make(chan struct{})}
	kubeconfig := filepath.Join(p.hub.Dir(), "hub-apiserver.kubeconfig")
	p.cmd = exec.CommandContext(t.Context(), harness.Binary(t, "hub-apiserver"), append([]string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port), "--data-dir=" + dataDir, "--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			keep(t, &p.out)
		}
	})
	return p
}

// keep writes the log of a process to the folder of the shared hub's logs.
func keep(t *testing.T, out *harness.Buffer) {
	log := filepath.Join(harness.Hub(t).Dir(), "logs", strings.ReplaceAll(t.Name(), "/", "_")+".log")
	if err := os.WriteFile(log, []byte(out.String()), 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("the log of its hub-apiserver is %s", log)
}

// readyProcess starts a process and waits until it serves the admin.
func readyProcess(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	p := startProcess(t, dataDir, args...)
	harness.Eventually(t, "hub-apiserver is ready", func(context.Context) (bool, error) {
		select {
		case <-p.ended:
			t.Fatalf("hub-apiserver has ended: %s", p.out.String())
		default:
		}
		_, err := harness.Get(t, p.config(), "/readyz")
		return err == nil, err
	})
	return p
}

// config returns an admin's client configuration for the process.
func (p *process) config() *rest.Config {
	config := p.hub.HubAPIServerConfig(0) // all have a certificate of the CA that they share
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", p.port)
	return config
}

// terminate sends SIGTERM to the process.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits until the process exits.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	harness.Eventually(t, "hub-apiserver has ended", func(context.Context) (bool, error) {
		select {
		case <-p.ended:
			return true, nil
		default:
			return false, nil
		}
	})
	return p.cmd.ProcessState.ExitCode()
}
