// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// ServerEnv names the server that this test process runs as. A server configures logs and feature gates of its whole process, so each one has its own
// process.
const ServerEnv = "CLUSTERHUB_TEST_SERVER"

// serve runs a server until the test ends.
func (w *world) serve(name string, args []string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	server := localserver.Process{Dir: w.t.TempDir(), Name: name, Tied: true}
	if err := server.Start(self, args, ServerEnv+"="+name); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		running, err := server.Running()
		// The controllers of a hub that is being deleted lose their rights, and exit some time later.
		if err != nil || !running && (name != deploy.Manager || !w.ending.Load()) {
			w.t.Errorf("%s has ended: %v, %v", name, server.Ended(), err)
		}
		if err := server.Stop(); err != nil {
			w.t.Errorf("%s cannot be stopped: %v", name, err)
		}
		if said, err := os.ReadFile(server.Log()); w.t.Failed() {
			w.t.Logf("%s has said:\n%s%v", name, said, err)
		}
	})
}
