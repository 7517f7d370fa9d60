// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
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

// launcher starts and stops the processes of a hub.
type launcher struct {
	config Options
	ports  ports
	// started are the processes that this process has started.
	started map[string]bool
	// record, if set, is called with each process instead of starting it. Nothing is waited for then, and no front is contacted. It is for tests.
	record func(name, program string, args, env []string)
}

func (l *launcher) path(elements ...string) string {
	return filepath.Join(append([]string{l.config.Dir}, elements...)...)
}

func (l *launcher) bin(name string) string { return filepath.Join(l.config.BinDir, name) }

func (l *launcher) kubeconfigFile(client string) string { return l.path(client + ".kubeconfig") }

// process returns a process of the hub, whether it runs or not.
func (l *launcher) process(name string) localserver.Process {
	p := processIn(l.config.Dir, name)
	p.Tied, p.SharesSession = !l.config.Detach, l.config.Detach
	return p
}

// processIn returns a process of a hub, or of a cluster beside it, that continues when this one ends.
func processIn(dir, name string) localserver.Process {
	return localserver.Process{Dir: filepath.Join(dir, runDir), Name: name, LogFile: filepath.Join(dir, "logs", name+".log"), SharesSession: true}
}

// running reports whether a process of the hub runs. If that is unknown, it returns false, and the process cannot be started either.
func (l *launcher) running(name string) bool {
	running, err := l.process(name).Running()
	return err == nil && running
}

// PIDs returns the ids of the running processes, by name, without those of clusters beside the hub.
func (l *launcher) PIDs() map[string]int {
	pids := map[string]int{}
	for _, name := range l.processes() {
		if l.running(name) {
			pids[name] = l.process(name).PID()
		}
	}
	return pids
}

// processes returns the names of the processes that have been started at some time.
func (l *launcher) processes() []string {
	return l.withFile(".lock")
}

// withFile returns the names of the processes that have a file with that suffix.
func (l *launcher) withFile(ending string) []string {
	files, err := filepath.Glob(l.path(runDir, "*"+ending))
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
func (l *launcher) run(ctx context.Context, name, bin string, args, env []string, ready func(context.Context) bool) error {
	if err := l.launch(name, bin, args, env); err != nil {
		return err
	}
	return l.await(ctx, name, ready)
}

// launch starts a process unless it is running. One of ours with another binary, other flags, or another kubeconfig is restarted; the others are not,
// which is logged.
func (l *launcher) launch(name, bin string, args, env []string) error {
	p, fingerprintFile := l.process(name), l.path(runDir, name+".runs")
	knows := env
	if slices.Contains(restarted, bin) { // it reads the address of the front only once
		kubeconfig, _ := os.ReadFile(l.kubeconfigFile(name))
		knows = append(slices.Clone(env), string(kubeconfig))
	}
	program, args, env := l.inImage(name, bin, args, env)
	if l.record != nil {
		l.record(name, program, args, env)
		return nil
	}
	p.OwnMounts = program != l.bin(bin)
	runs, err := fingerprint(l.imaged(bin), args, knows)
	if err != nil {
		return err
	}
	if l.running(name) {
		before, err := os.ReadFile(fingerprintFile)
		switch {
		case err == nil && string(before) == runs:
		case slices.Contains(restarted, bin):
			l.config.Log("Restarting %s, whose binary, flags or kubeconfig have changed", name)
			if err := p.Stop(); err != nil {
				return err
			}
		default: // it would stop slowly while its clients use it
			l.config.Log("Not restarting %s, which has changed: run `make down up` to restart it", name)
		}
	}
	if !l.running(name) {
		if err := localserver.WriteFile(fingerprintFile, []byte(runs)); err != nil {
			return err
		}
		if err := p.Start(program, args, env...); err != nil {
			return err
		}
		l.started[name] = true
	}
	if l.config.Detach {
		return l.recordWanted(name, wanted{Program: program, Args: args, Env: env, OwnMounts: p.OwnMounts})
	}
	return nil
}

// await waits until a process is ready.
func (l *launcher) await(ctx context.Context, name string, ready func(context.Context) bool) error {
	if l.record != nil {
		return nil
	}
	p := l.process(name)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if !l.running(name) {
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
func (l *launcher) stop(name string) {
	l.recordUnwanted(name)
	p := l.process(name)
	end := p.Stop
	if name == procAuthenticator { // it does not exit on SIGTERM
		end = p.Kill
	}
	if err := end(); err != nil {
		l.config.Log("%v", err)
	}
}

// kill kills a process with SIGKILL.
func (l *launcher) kill(name string) {
	l.recordUnwanted(name)
	if err := l.process(name).Kill(); err != nil {
		l.config.Log("%v", err)
	}
}

// refuseFormer returns an error about processes that earlier versions of this program have started and recorded in other files.
func (l *launcher) refuseFormer() error {
	var pids []string
	for _, name := range l.withFile(".pid") {
		data, err := os.ReadFile(l.path(runDir, name+".pid"))
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
		l.config.Dir, strings.Join(pids, " "))
}

// recordWanted records that a process should run.
func (l *launcher) recordWanted(name string, how wanted) error {
	data, err := json.Marshal(how)
	if err != nil {
		return err
	}
	if l.started[name] {
		_ = os.Remove(l.path(runDir, name+endedFile))
	}
	return localserver.WriteFile(l.path(runDir, name+wantedFile), data)
}

// recordUnwanted records that a process should not run.
func (l *launcher) recordUnwanted(name string) {
	for _, file := range []string{wantedFile, endedFile} {
		if err := os.Remove(l.path(runDir, name+file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.config.Log("%v", err)
		}
	}
}
