// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// resultFile has the result of the start of a hub by a supervisor, once it is complete: an error, or nothing.
const resultFile = "supervisor.result"

// readEvery is the interval at which StartSupervisor reads the supervisor's output.
const readEvery = 50 * time.Millisecond

// StartSupervisor starts a program in the background that starts the hub and calls Report, and then Supervise; it replaces the previous one. The
// processes of the hub are children of the program, and in its session. Until Report is called, its output is copied to out; then the error of Report
// is returned. When the context ends, the program gets SIGINT, and is still waited for.
func StartSupervisor(ctx context.Context, config Options, out io.Writer, program string, args ...string) error {
	h, err := Open(config)
	if err != nil {
		return err
	}
	p := processIn(h.config.Dir, procSupervisor)
	p.SharesSession = false
	result := h.path(runDir, resultFile)
	running, err := p.Running()
	if err != nil {
		return err
	}
	if _, err := os.Stat(result); running && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the hub in %s is being started by another command: wait for it", h.config.Dir)
	}
	if err := p.Stop(); err != nil {
		return err
	}
	if err := os.Remove(result); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.Start(program, args); err != nil {
		return err
	}
	return follow(ctx, p, result, out)
}

// follow copies the output of a supervisor, until a result exists.
func follow(ctx context.Context, p localserver.Process, result string, out io.Writer) error {
	log, err := os.Open(p.Log())
	if err != nil {
		return err
	}
	defer log.Close()
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	asked := ctx.Done()
	for {
		select {
		case <-asked:
			asked = nil
			if pid := p.PID(); pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGINT)
			}
		case <-ticker.C:
		}
		// In this order: all earlier output is complete when the result exists.
		running, err := p.Running()
		if err != nil {
			return err
		}
		said, failed := os.ReadFile(result)
		if _, err := io.Copy(out, log); err != nil {
			return err
		}
		switch {
		case failed == nil && len(said) > 0:
			return errors.New(string(said))
		case failed == nil:
			return nil
		case !running:
			return p.Ended()
		}
	}
}

// Report reports to StartSupervisor how the start of the hub in a directory has ended.
func Report(dir string, started error) error {
	said := ""
	if started != nil {
		said = strings.TrimSpace(started.Error())
	}
	return localserver.WriteFile(processIn(dir, procSupervisor).Dir+string(os.PathSeparator)+resultFile, []byte(said))
}
