// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// CPUProfile starts a CPU profile of hub-apiserver if profiles are enabled. The returned function waits for it.
func (e *Env) CPUProfile(ctx context.Context, name string, seconds int) func() {
	return e.CPUProfileOf(ctx, e.Hub.HubAPIServerConfig(0), name, seconds)
}

// CPUProfileOf starts a CPU profile of any API server in the same way.
func (e *Env) CPUProfileOf(ctx context.Context, server *rest.Config, name string, seconds int) func() {
	if e.Options.ProfileDir == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		done <- e.saveProfile(ctx, server, "cpu-"+name, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	}()
	return func() {
		if err := <-done; err != nil {
			fmt.Println("    no profile:", err)
		}
	}
}

// saveProfile saves the response of an API server to an admin.
func (e *Env) saveProfile(ctx context.Context, server *rest.Config, name, path string) error {
	admin, err := NewClient(server)
	if err != nil {
		return err
	}
	var profile bytes.Buffer
	if err := admin.Get(ctx, path, &profile); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.Options.ProfileDir, name+".pprof"), profile.Bytes(), 0o644)
}
