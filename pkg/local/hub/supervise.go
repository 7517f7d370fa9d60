// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// Files of a supervised process: how it is started, and how it has exited since.
const (
	wantedFile = ".wanted"
	endedFile  = ".ended"
)

// wanted specifies how a process that should run is started.
type wanted struct {
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	Env       []string `json:"env,omitempty"`
	OwnMounts bool     `json:"ownMounts,omitempty"`
}

// ended records how a process exited that should run.
type ended struct {
	// Times is the number of exits since it was started by Start.
	Times int `json:"times"`
	// At is when it was last observed to have exited, and Next when it is restarted.
	At   time.Time `json:"at"`
	Next time.Time `json:"next"`
	// How is the reason from the system, if known, and Said the last line of its log.
	How  string `json:"how,omitempty"`
	Said string `json:"said"`
}

// why returns how the process exited, as text.
func (e ended) why() string {
	if e.How == "" {
		return "last log line: " + e.Said
	}
	return e.How + ", last log line: " + e.Said
}

// checkInterval is the interval of Supervise's checks, and boundEvery the number of checks between those of the logs.
const (
	checkInterval = 500 * time.Millisecond
	boundEvery    = 120
)

// maxLog is the size of a log from which on its content is moved to the previous log.
const maxLog = 64 << 20

// Supervise restarts the processes of a hub, and of the clusters beside it, when they have exited, until the context ends, or until nothing should
// run any more. It leaves them running. A process that exits repeatedly is restarted with growing delays; see localserver.Backoff.
func Supervise(ctx context.Context, dir string, log func(format string, args ...any)) error {
	s := &supervisor{dir: dir, log: log, watched: map[string]*processState{}}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for checks := 0; ; checks++ {
		all := s.check(time.Now())
		if all == 0 {
			return nil
		}
		if checks%boundEvery == 0 {
			s.boundLogs(maxLog)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

type supervisor struct {
	dir     string
	log     func(format string, args ...any)
	watched map[string]*processState // by their names
}

// processState is the supervisor's state of a process.
type processState struct {
	// started is when it was started, or first observed; zero when it has exited.
	started time.Time
	backoff localserver.Backoff
}

// check restarts the processes that have exited and whose backoff has passed. It returns how many should run.
func (s *supervisor) check(now time.Time) int {
	all := supervised(s.dir)
	for _, p := range all {
		if err := s.restart(p, now); err != nil {
			s.log("%s: %v", p.label, err)
		}
	}
	return len(all)
}

// restart restarts a process that has exited, after its backoff.
func (s *supervisor) restart(p supervisedProcess, now time.Time) error {
	w := s.watched[p.label]
	if w == nil {
		w = &processState{started: now}
		s.watched[p.label] = w
	}
	running, err := p.process.Running()
	if err != nil || running {
		return err
	}
	if !w.started.IsZero() {
		w.backoff.Ended(w.started, now)
		w.started = time.Time{}
		e := p.noteEnd(now, w.backoff.NotBefore)
		s.log("%s exited: %s", p.label, e.why())
	}
	if now.Before(w.backoff.NotBefore) {
		return nil
	}
	// From here on it counts as started, even if that fails: it has a backoff then, too.
	w.started = now
	how, err := p.wanted()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it should no longer run
	}
	if err != nil {
		return err
	}
	s.log("Restarting %s", p.label)
	p.process.OwnMounts = how.OwnMounts
	return p.process.Start(how.Program, how.Args, how.Env...)
}

// boundLogs moves the content of logs that are too large to their previous files. The processes append, so they may continue to write.
func (s *supervisor) boundLogs(most int64) {
	for _, dir := range dirs(s.dir) {
		files, _ := filepath.Glob(filepath.Join(dir, "logs", "*.log")) // the pattern is valid
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Size() <= most {
				continue
			}
			if err := errors.Join(copyFile(file, file+localserver.PreviousLog), os.Truncate(file, 0)); err != nil {
				s.log("%v", err)
			}
		}
	}
}

// supervisedProcess is a process that should run.
type supervisedProcess struct {
	// label is its name, with the name of its cluster as a prefix if it belongs to one beside the hub.
	label   string
	process localserver.Process
}

func (p supervisedProcess) file(ending string) string {
	return filepath.Join(p.process.Dir, p.process.Name+ending)
}

func (p supervisedProcess) wanted() (how wanted, err error) {
	data, err := os.ReadFile(p.file(wantedFile))
	if err != nil {
		return how, err
	}
	return how, json.Unmarshal(data, &how)
}

// end returns how the process has last exited, if it has.
func (p supervisedProcess) end() (e ended) {
	if data, err := os.ReadFile(p.file(endedFile)); err == nil {
		_ = json.Unmarshal(data, &e) // a damaged file is ignored
	}
	return e
}

// noteEnd records that the process has exited, and why.
func (p supervisedProcess) noteEnd(at, next time.Time) ended {
	e := ended{Times: p.end().Times + 1, At: at, Next: next, How: p.process.HowEnded(), Said: localserver.Complaint(p.process.Log())}
	if data, err := json.Marshal(e); err == nil {
		_ = localserver.WriteFile(p.file(endedFile), data) // the log has it, too
	}
	return e
}

// dirs returns the directories of a hub and of the clusters beside it.
func dirs(dir string) []string {
	beside, _ := filepath.Glob(filepath.Join(dir, "*", runDir)) // the pattern is valid, except for an unusual name of the directory
	all := []string{dir}
	for _, run := range beside {
		all = append(all, filepath.Dir(run))
	}
	return all
}

// supervised returns the processes that should run, of a hub and of the clusters beside it.
func supervised(dir string) (all []supervisedProcess) {
	for _, of := range dirs(dir) {
		entries, _ := os.ReadDir(filepath.Join(of, runDir)) // one that is gone has none
		for _, entry := range entries {
			name, is := strings.CutSuffix(entry.Name(), wantedFile)
			if !is {
				continue
			}
			label := name
			if of != dir {
				label = filepath.Base(of) + "/" + name
			}
			all = append(all, supervisedProcess{label: label, process: processIn(of, name)})
		}
	}
	slices.SortFunc(all, func(a, b supervisedProcess) int { return strings.Compare(a.label, b.label) })
	return all
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}
