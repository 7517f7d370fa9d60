// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/pkg/local/image"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// startTimeout is the maximum time for a process to become ready.
const startTimeout = 90 * time.Second

// process returns a process of the hub, whether it runs or not.
func (h *Instance) process(name string) localserver.Process {
	p := processIn(h.config.Dir, name)
	p.Tied, p.SharesSession = !h.config.Detach, h.config.Detach
	return p
}

// processIn returns a process of a hub, or of a cluster beside it, that continues when this one ends.
func processIn(dir, name string) localserver.Process {
	return localserver.Process{Dir: filepath.Join(dir, runDir), Name: name, LogFile: filepath.Join(dir, "logs", name+".log"), SharesSession: true}
}

// running reports whether a process of the hub runs. If that is unknown, it returns false, and the process cannot be started either.
func (h *Instance) running(name string) bool {
	running, err := h.process(name).Running()
	return err == nil && running
}

// processes returns the names of the processes that have been started at some time.
func (h *Instance) processes() []string {
	return h.withFile(".lock")
}

// withFile returns the names of the processes that have a file with that suffix.
func (h *Instance) withFile(ending string) []string {
	files, err := filepath.Glob(h.path(runDir, "*"+ending))
	if err != nil {
		return nil // only for an invalid pattern
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ending)
	}
	return files
}

// fingerprint identifies a binary with its flags. The modification time of the binary would not be sufficient: go build sets it also when it does not
// change the binary.
func fingerprint(bin string, args, env []string) (string, error) {
	file, err := os.Open(bin)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "%q %q", args, env)
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}

// restarted lists our own binaries.
var restarted = []string{procHubAPIServer, procHubController, procHubAgent, procProvider, image.Binary}

// run starts a process like launch, and waits until it is ready.
func (h *Instance) run(ctx context.Context, name, bin string, args, env []string, ready func(context.Context) bool) error {
	if err := h.launch(name, bin, args, env); err != nil {
		return err
	}
	return h.await(ctx, name, ready)
}

// launch starts a process unless it is running. One of ours with another binary, other flags, or another kubeconfig is restarted; the others are not,
// which is logged.
func (h *Instance) launch(name, bin string, args, env []string) error {
	p, fingerprintFile := h.process(name), h.path(runDir, name+".runs")
	knows := env
	if slices.Contains(restarted, bin) { // it reads the address of the front only once
		kubeconfig, _ := os.ReadFile(h.kubeconfigFile(name))
		knows = append(slices.Clone(env), string(kubeconfig))
	}
	program, args, env := h.inImage(name, bin, args, env)
	if h.record != nil {
		h.record(name, program, args, env)
		return nil
	}
	p.OwnMounts = program != h.bin(bin)
	runs, err := fingerprint(h.imaged(bin), args, knows)
	if err != nil {
		return err
	}
	if h.running(name) {
		before, err := os.ReadFile(fingerprintFile)
		switch {
		case err == nil && string(before) == runs:
		case slices.Contains(restarted, bin):
			h.config.Log("Restarting %s, whose binary, flags or kubeconfig have changed", name)
			if err := p.Stop(); err != nil {
				return err
			}
		default: // it would stop slowly while its clients use it
			h.config.Log("Not restarting %s, which has changed: run `make down up` to restart it", name)
		}
	}
	if !h.running(name) {
		if err := localserver.WriteFile(fingerprintFile, []byte(runs)); err != nil {
			return err
		}
		if err := p.Start(program, args, env...); err != nil {
			return err
		}
		h.started[name] = true
	}
	if h.config.Detach {
		return h.want(name, wanted{Program: program, Args: args, Env: env, OwnMounts: p.OwnMounts})
	}
	return nil
}

// await waits until a process is ready.
func (h *Instance) await(ctx context.Context, name string, ready func(context.Context) bool) error {
	if h.record != nil {
		return nil
	}
	p := h.process(name)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if !h.running(name) {
			return false, p.Ended()
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return p.PID() > 0 && ready(ctx), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s is not ready after %s: %s; see its log %s", name, startTimeout, localserver.Complaint(p.Log()), p.Log())
	}
	return err
}

// stop stops a process, gracefully if possible.
func (h *Instance) stop(name string) {
	h.unwant(name)
	p := h.process(name)
	end := p.Stop
	if name == procAuthenticator { // it does not exit on SIGTERM
		end = p.Kill
	}
	if err := end(); err != nil {
		h.config.Log("%v", err)
	}
}

// kill kills a process with SIGKILL.
func (h *Instance) kill(name string) {
	h.unwant(name)
	if err := h.process(name).Kill(); err != nil {
		h.config.Log("%v", err)
	}
}

// refuseFormer returns an error about processes that earlier versions of this program have started and recorded in other files.
func (h *Instance) refuseFormer() error {
	var pids []string
	for _, name := range h.withFile(".pid") {
		data, err := os.ReadFile(h.path(runDir, name+".pid"))
		var pid int
		if err != nil || len(data) == 0 || data[0] != '{' {
			continue
		}
		if _, err := fmt.Sscanf(string(data), `{"pid":%d`, &pid); err == nil && pid > 1 && syscall.Kill(pid, 0) == nil {
			pids = append(pids, fmt.Sprint(pid))
		}
	}
	if len(pids) == 0 {
		return nil
	}
	return fmt.Errorf("the hub in %s was started by an earlier version of this program: stop its processes with `kill %s`, then retry",
		h.config.Dir, strings.Join(pids, " "))
}
