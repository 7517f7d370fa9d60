// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/etcd"
)

func etcdClient(t *testing.T, server *etcd.Server) *clientv3.Client {
	t.Helper()
	config := server.Transport()
	tls, err := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile,
		TrustedCAFile: config.TrustedCAFile}.ClientConfig()
	must(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: config.ServerList, TLS: tls})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRelist_CompactionDoesNotDisturb: etcd compacts its history every few minutes. That ends no watch that is up to date, and a replica can
// start after it.
func TestRelist_CompactionDoesNotDisturb(t *testing.T) {
	server := ownEtcd(t)
	h := newHubOn(t, server)
	h.set("s", map[string]string{})
	h.cluster("c1", nil)
	h.front.allow("ann", "s")
	r := h.replica()
	h.awaitVisibility(r)
	root := h.client(r, admin)
	from := root.list().ResourceVersion
	w := root.watch(version(from))
	written := h.cluster("c2", nil)
	w.expect("ADDED c2.s")
	_, err := etcdClient(t, server).Compact(t.Context(), int64(number(t, written.ResourceVersion)))
	must(t, err)
	h.cluster("c3", nil)
	w.expect("ADDED c3.s")
	root.watch(version(from)).expect("ADDED c2.s", "ADDED c3.s")
	expectNames(t, root.names(exactly(from)), "c1.s")

	late := h.replica()
	h.awaitVisibility(late)
	for _, who := range []client{h.client(late, admin), h.client(late, someone("ann"))} {
		list := who.list()
		expectNames(t, namesOf(list), "c1.s", "c2.s", "c3.s")
		who.watch(version(list.ResourceVersion))
	}
	if _, err := h.client(late, admin).tryList(exactly(from)); !apierrors.IsResourceExpired(err) {
		t.Errorf("a version before the replica started: got %v, want 410", err)
	}
}

// TestRelist_BrokenConnectionMissesNothing: after a broken connection to etcd, the watch of clusters and sets continues where it was. If
// etcd has compacted the events in between, everything is recomputed: watches end, so that their clients reconnect, and nothing is missing.
func TestRelist_BrokenConnectionMissesNothing(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted meanwhile: %v", compacted), func(t *testing.T) {
			server := ownEtcd(t)
			h := newHubOn(t, server)
			h.set("s", map[string]string{})
			h.set("x", map[string]string{})
			for i := range 3 {
				h.cluster(fmt.Sprintf("c%d", i), nil)
			}
			h.front.allow("ann", "s")
			r, line := h.behind()
			h.awaitVisibility(r)
			root, ann := h.client(r, admin), h.client(r, someone("ann"))
			before := root.list().ResourceVersion
			watches := map[*stream]string{
				root.watch(version(before)): "DELETED c1.s, DELETED c1.x, ADDED c3.s, ADDED c3.x, DELETED c0.x, DELETED c2.x, DELETED c3.x",
				ann.watch(version(before)):  "DELETED c1.s, ADDED c3.s",
			}

			line.cut(true)
			h.deleteCluster("c1")
			h.cluster("c3", nil)
			gone := h.deleteSet("x")
			h.set("unrelated", nil)
			if compacted {
				_, err := etcdClient(t, server).Compact(t.Context(), int64(number(t, gone.ResourceVersion)))
				must(t, err)
			}
			line.cut(false)

			root.awaitNames("c0.s", "c2.s", "c3.s")
			ann.awaitNames("c0.s", "c2.s", "c3.s")
			for w, want := range watches {
				var told []change
				for describe(told) != want {
					c, open := w.next()
					if !open || c.Type == watch.Error {
						break
					}
					told = append(told, c)
				}
				switch got := describe(told); {
				case compacted && got != "":
					t.Errorf("an open watch told %q, want its end", got)
				case !compacted && got != want:
					t.Errorf("an open watch told %q, want %q", got, want)
				}
			}
			for _, who := range []client{root, ann} {
				if w, err := who.tryWatch(t.Context(), version(before)); compacted && !apierrors.IsResourceExpired(err) {
					must(t, err)
					if c, _ := w.next(); c.Type != watch.Error {
						t.Errorf("from before: got %v, want 410", c)
					}
				}
				w := who.watch(version(who.list().ResourceVersion))
				h.relabel("c2", labelled("of="+who.who.GetName()))
				w.expect("MODIFIED c2.s")
			}
		})
	}
}
