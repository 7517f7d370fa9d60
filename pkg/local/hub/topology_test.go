// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// counts returns Options with a topology: fronts, hub-apiservers, members of an etcd, clusters.
func counts(fronts, hubAPIServers, etcdMembers, clusters int) Options {
	return Options{FrontReplicas: fronts, Replicas: hubAPIServers, EtcdMembers: etcdMembers, Clusters: clusters}
}

func TestWithin(t *testing.T) {
	small := topology{fronts: 1, hubAPIServers: 1, etcdMembers: 1, etcdPorts: 1, embedded: true}
	large := topology{fronts: 2, hubAPIServers: 3, etcdMembers: 3, etcdPorts: 3, clusters: 2, external: true}
	external := func(c Options) Options { c.ExternalEtcd = true; return c }
	plain := func(c Options) Options { c.Plain = true; return c }
	for name, c := range map[string]struct {
		asked Options
		has   topology
		want  Options
	}{
		"a new hub is small":                    {Options{}, topology{}, counts(1, 1, 1, 0)},
		"what is there stays: a small hub":      {Options{}, small, counts(1, 1, 1, 0)},
		"what is there stays: a large hub":      {Options{}, large, external(counts(2, 3, 3, 2))},
		"fronts come":                           {counts(5, 0, 0, 0), small, counts(5, 1, 1, 0)},
		"API servers go":                        {counts(1, 1, 0, 0), large, external(counts(1, 1, 3, 2))},
		"clusters come":                         {counts(0, 0, 0, 8), small, counts(1, 1, 1, 8)},
		"several hub-apiservers share an etcd":  {counts(0, 2, 0, 0), topology{}, external(counts(1, 2, 1, 0))},
		"three members are outside":             {counts(0, 0, 3, 0), topology{}, external(counts(1, 1, 3, 0))},
		"a plain cluster can have an etcd of 3": {plain(counts(0, 0, 3, 0)), topology{}, plain(counts(1, 1, 3, 0))},
		"a hub comes to a plain cluster":        {Options{}, topology{fronts: 1, hubAPIServers: 1, etcdMembers: 1, etcdPorts: 1}, counts(1, 1, 1, 0)},
		"an etcd of one can get other ports":    {Options{}, topology{etcdMembers: 1, embedded: true}, counts(1, 1, 1, 0)},
	} {
		if got, err := c.asked.within(c.has); err != nil || !same(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		asked Options
		has   topology
		says  string
	}{
		"too many fronts":             {counts(6, 0, 0, 0), topology{}, "kube-apiservers in front: requested 6, must be 1 to 5"},
		"fewer than none":             {counts(0, -1, 0, 0), topology{}, "hub-apiservers: requested -1, must be 1 to 5"},
		"too many members":            {counts(0, 0, 5, 0), topology{}, "members of each etcd: requested 5, must be 1 to 3"},
		"an even number of members":   {counts(0, 0, 2, 0), topology{}, "must be 1 or 3"},
		"too many clusters":           {counts(0, 0, 0, 9), topology{}, "must be 0 to 8"},
		"one member becomes three":    {counts(0, 0, 3, 0), small, "has 1, which cannot change: request 1, or delete"},
		"three members become one":    {counts(0, 0, 1, 0), large, "has 3, which cannot change: request 3, or delete"},
		"lost ports of three members": {Options{}, topology{etcdMembers: 3, external: true}, "/hub/ports.json does not have the ports"},
		"the etcd inside comes out":   {external(Options{}), small, "stores its objects in the embedded one: request neither, or delete"},
		"several on the etcd inside":  {counts(0, 2, 0, 0), small, "stores its objects in the embedded one: request neither, or delete"},
		"clusters go":                 {counts(0, 0, 0, 1), large, "has 2: request 2 or more, or delete"},
		"a hub becomes plain":         {plain(Options{}), small, "use another directory"},
	} {
		c.asked.Dir = "/hub"
		if _, err := c.asked.within(c.has); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func same(a, b Options) bool {
	return a.FrontReplicas == b.FrontReplicas && a.Replicas == b.Replicas && a.EtcdMembers == b.EtcdMembers && a.Clusters == b.Clusters &&
		a.ExternalEtcd == b.ExternalEtcd && a.Plain == b.Plain
}

func TestPortNames(t *testing.T) {
	names := counts(2, 3, 3, 0).portNames()
	unique := map[string]bool{}
	for _, name := range names {
		unique[name] = true
	}
	for _, name := range []string{"kube-apiserver", "kube-apiserver-1", "hub-apiserver", "hub-apiserver-2", "etcd", "etcd/peer", "etcd-2/peer", "hub-etcd-1"} {
		if !unique[name] {
			t.Errorf("%s has no port: %q", name, names)
		}
	}
	if len(unique) != len(names) || len(names) != 7+2+3+3*4 {
		t.Errorf("%d ports, %d of them different: %q", len(names), len(unique), names)
	}
	for name, want := range map[string]struct {
		kind string
		i    int
	}{"etcd": {"etcd", 0}, "hub-etcd-2": {"hub-etcd", 2}, "kube-controller-manager": {"kube-controller-manager", 0}, "kube-apiserver-1": {"kube-apiserver", 1}} {
		if kind, i := memberOf(name); kind != want.kind || i != want.i || memberName(kind, i) != name {
			t.Errorf("%s is %d of %s", name, i, kind)
		}
	}
}

// newTopology returns a hub with these ports, whose processes only sleep.
func newTopology(t *testing.T, p ports, runs ...string) *Instance {
	t.Helper()
	config := Options{Dir: t.TempDir(), BinDir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(config.BinDir, "sleeps"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	h.ports = p
	for _, name := range runs {
		if err := h.run(t.Context(), name, "sleeps", nil, nil, func(context.Context) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestStopSurplus(t *testing.T) {
	h := newTopology(t, ports{procFront: 1, procHubAPIServer: 2, procEtcd: 3},
		"kube-apiserver", "kube-apiserver-1", "hub-apiserver", "hub-apiserver-2", "etcd", "kube-controller-manager")
	h.stopSurplus()
	want := []string{"etcd", "hub-apiserver", "kube-apiserver", "kube-controller-manager"}
	if got := slices.Sorted(maps.Keys(h.PIDs())); !slices.Equal(got, want) {
		t.Errorf("these run: %q, want %q", got, want)
	}
}

// TestKubeconfigs_NameRunningFront: users reach the hub there, and hub-apiservers do not all need the same front.
func TestKubeconfigs_NameRunningFront(t *testing.T) {
	h := newTopology(t, ports{procFront: 11, "kube-apiserver-1": 12, procHubAPIServer: 13, "hub-apiserver-1": 14})
	want := func(when string, servers map[string]string) {
		t.Helper()
		for name, port := range servers {
			config, err := clientcmd.LoadFromFile(h.kubeconfigFile(name))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Clusters["clusterhub-local"].Server; got != "https://127.0.0.1:"+port {
				t.Errorf("%s, %s asks %s, want port %s", when, name, got, port)
			}
		}
	}
	both := map[string]string{"admin": "11", "hub-controller-manager": "11", "hub-apiserver": "11", "hub-apiserver-1": "12"}
	if err := h.identify(); err != nil {
		t.Fatal(err)
	}
	want("before the first start", both)
	for i := range 2 {
		if err := h.launch(memberName(procFront, i), "sleeps", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.kubeconfigs(); err != nil {
		t.Fatal(err)
	}
	want("with both fronts", both)
	h.KillFront(0)
	want("without the first front", map[string]string{"admin": "12", "hub-controller-manager": "12", "hub-apiserver": "12", "hub-apiserver-1": "12"})
	if got := h.FrontURLs(); !slices.Equal(got, []string{"https://127.0.0.1:12"}) {
		t.Errorf("these fronts run: %q", got)
	}
}

// TestClusters finds those beside the hub, and nothing else in its directory.
func TestClusters(t *testing.T) {
	h := newTopology(t, ports{}, "etcd")
	beside, err := Open(h.config.Cluster("cluster-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.path(procProvider, "clusters"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := beside.launch(procEtcd, "sleeps", nil, nil); err != nil {
		t.Fatal(err)
	}
	clusters, err := h.Clusters()
	if err != nil || len(clusters) != 1 || clusters[0].Dir() != filepath.Join(h.Dir(), "cluster-1") {
		t.Errorf("%d clusters: %v", len(clusters), err)
	}
	if got := h.topology().clusters; got != 1 {
		t.Errorf("%d clusters are counted", got)
	}
	for _, each := range []*Instance{h, beside} {
		if got := slices.Collect(maps.Keys(each.PIDs())); !slices.Equal(got, []string{"etcd"}) {
			t.Errorf("in %s these run: %q", each.Dir(), got)
		}
	}
	for name, end := range map[string]func(){"Stop": h.Stop, "Kill": h.Kill} {
		for _, each := range []*Instance{h, beside} {
			if err := each.launch(procEtcd, "sleeps", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		end()
		for _, each := range []*Instance{h, beside} {
			if got := each.PIDs(); len(got) > 0 {
				t.Errorf("after %s of the hub, these run in %s: %v", name, each.Dir(), got)
			}
		}
	}
}
