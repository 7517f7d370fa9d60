// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// cpuProfile starts a CPU profile of hub-apiserver if profiles are enabled. The returned function waits for it.
func (e *env) cpuProfile(ctx context.Context, name string, seconds int) func() {
	return e.cpuProfileOf(ctx, e.hub.HubAPIServerConfig(0), name, seconds)
}

// cpuProfileOf does the same with any API server.
func (e *env) cpuProfileOf(ctx context.Context, server *rest.Config, name string, seconds int) func() {
	if e.options.profileDir == "" {
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
func (e *env) saveProfile(ctx context.Context, server *rest.Config, name, path string) error {
	admin, err := newClient(server)
	if err != nil {
		return err
	}
	var profile bytes.Buffer
	if err := admin.get(ctx, path, &profile); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.options.profileDir, name+".pprof"), profile.Bytes(), 0o644)
}
