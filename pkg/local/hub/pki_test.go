// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

// TestIdentify_MigratesToSingleCA migrates a running hub with one CA for everything: processes that trust that CA exit, clients continue to trust the front,
// and certificates of agents stay valid.
func TestIdentify_MigratesToSingleCA(t *testing.T) {
	var said []string
	config := Options{Dir: t.TempDir(), BinDir: t.TempDir(), Log: func(format string, _ ...any) { said = append(said, format) }}
	sleep := []byte("#!/bin/sh\nexec sleep 600\n")
	if err := os.WriteFile(filepath.Join(config.BinDir, procEtcd), sleep, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	certs := h.certificates()
	ca, err := h.authority(serverCA)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{procEtcd, procFront, "admin"} {
		if err := ca.Peer(name, name); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(context.Context) bool { return true }
	if err := h.run(t.Context(), procEtcd, procEtcd, nil, nil, ready); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(certs.Cert(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := map[string][]byte{}
	for _, name := range []string{serverCA, procEtcd, procFront, "admin"} {
		before[name] = read(name)
	}

	if err := h.identify(); err != nil {
		t.Fatal(err)
	}
	if h.running(procEtcd) || len(said) != 1 || !strings.Contains(said[0], "Stopping") {
		t.Errorf("an etcd that trusts the one CA runs: %t; logged: %q", h.running(procEtcd), said)
	}
	for name, was := range before {
		if same := bytes.Equal(read(name), was); same != (name == serverCA) {
			t.Errorf("%s is as it was: %t", name, same)
		}
	}
	if all := bundled(t, h); !slices.Equal(all, []string{clientCA, csrSigner, serverCA}) {
		t.Errorf("the front knows clients of %q", all)
	}
	if _, err := os.Stat(certs.Key(formerClientCA)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former CA can sign: %v", err)
	}

	if err := h.run(t.Context(), procEtcd, procEtcd, nil, nil, ready); err != nil {
		t.Fatal(err)
	}
	admin := read("admin")
	if err := h.identify(); err != nil {
		t.Fatal(err)
	}
	if !h.running(procEtcd) || !bytes.Equal(read("admin"), admin) {
		t.Error("a hub that has been brought over is brought over again")
	}
	if all := bundled(t, h); !slices.Equal(all, []string{clientCA, csrSigner, serverCA}) {
		t.Errorf("at the next start, the front knows clients of %q", all)
	}
}

// TestIdentify_ServerCAIsForServersOnly: a new hub authenticates no client by the CA of its servers.
func TestIdentify_ServerCAIsForServersOnly(t *testing.T) {
	h, err := open(Options{Dir: t.TempDir(), BinDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	for range 2 {
		if err := h.identify(); err != nil {
			t.Fatal(err)
		}
	}
	if all := bundled(t, h); !slices.Equal(all, []string{clientCA, csrSigner}) {
		t.Errorf("the front knows clients of %q", all)
	}
}

// bundled returns the CAs whose clients the front authenticates.
func bundled(t *testing.T, h *Instance) (names []string) {
	t.Helper()
	certs, err := cert.CertsFromFile(h.certificates().Cert(clientBundle))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range certs {
		names = append(names, strings.TrimPrefix(c.Subject.CommonName, "clusterhub-local-"))
	}
	return names
}
