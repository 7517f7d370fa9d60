// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// supervisorScript plays the program: it writes a line and ends its start as the first argument specifies.
const supervisorScript = `#!/bin/sh
trap 'printf interrupted >supervisor.new; mv supervisor.new supervisor.result; exec sleep 600' INT
echo "Starting $1"
case "$1" in
good) printf '' >supervisor.new ;;
bad) printf 'no room' >supervisor.new ;;
dies) echo "panic: no room"; exit 2 ;;
waits) while :; do sleep 0.01; done ;;
esac
mv supervisor.new supervisor.result
exec sleep 600
`

// TestStartSupervisor follows the start of supervisors, each of which replaces the previous one.
func TestStartSupervisor(t *testing.T) {
	config := Options{Dir: t.TempDir(), BinDir: t.TempDir()}
	program := filepath.Join(config.BinDir, "localhub")
	if err := os.WriteFile(program, []byte(supervisorScript), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	h, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Kill)
	before := 0
	start := func(ctx context.Context, arg, want string, lives bool) {
		t.Helper()
		var out bytes.Buffer
		err := StartSupervisor(ctx, config, &out, program, arg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
		if said := out.String(); !strings.HasPrefix(said, "Starting "+arg+"\n") {
			t.Errorf("%s: it is printed %q", arg, said)
		}
		pid := h.PIDs()[procSupervisor]
		if (pid != 0) != lives || pid == before && lives {
			t.Errorf("%s: the supervisor is process %d, and was %d before", arg, pid, before)
		}
		before = pid
	}
	start(t.Context(), "good", "", true)
	start(t.Context(), "bad", "no room", true)
	start(t.Context(), "dies", "supervisor exited (exit status 2): panic: no room", false)
	start(t.Context(), "good", "", true)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		start(ctx, "waits", "interrupted", true)
	}()
	log := h.process(procSupervisor).Log()
	awaits(t, "the last one starts", func() bool { return has(log, "Starting waits") })
	if err := StartSupervisor(t.Context(), config, &bytes.Buffer{}, program, "good"); err == nil || !strings.Contains(err.Error(), "is being started by another command") {
		t.Errorf("a start while another one goes on: %v", err)
	}
	cancel()
	<-ended
	h.Stop()
	if pids := h.PIDs(); len(pids) > 0 {
		t.Errorf("after a stop these run: %v", pids)
	}
}
