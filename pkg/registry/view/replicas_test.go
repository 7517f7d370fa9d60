// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
)

// line is the connection of one replica to etcd, which a test can block.
type line struct {
	address string

	mu   sync.Mutex
	cond *sync.Cond
	held bool
	down bool
	open []net.Conn
}

func newLine(t testing.TB, etcd string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &line{address: "https://" + listener.Addr().String()}
	l.cond = sync.NewCond(&l.mu)
	t.Cleanup(func() {
		l.hold(false)
		_ = listener.Close()
	})
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(etcd, "https://"))
			if err != nil || !l.connect(in, out) {
				_ = in.Close()
				continue
			}
			go l.copy(out, in)
			go l.copy(in, out)
		}
	}()
	return l
}

func (l *line) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.cond.Broadcast()
}

func (l *line) connect(in, out net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = out.Close()
		return false
	}
	l.open = append(l.open, in, out)
	return true
}

// cut breaks all connections and rejects new ones.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *line) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		for l.held {
			l.cond.Wait()
		}
		l.mu.Unlock()
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// behind starts a replica whose connection to etcd can be blocked.
func (h *hub) behind() (*clustersetmember.REST, *line) {
	h.t.Helper()
	direct := h.config.Transport.ServerList
	l := newLine(h.t, direct[0])
	h.config.Transport.ServerList = []string{l.address}
	defer func() { h.config.Transport.ServerList = direct }()
	return h.replica(), l
}

// TestReplicas_WatchFromVersionOfNewerReplica: a client comes from a replica that is ahead, with a version at
// which a revocation is already in effect. The replica behind must not show it what the user could see before.
func TestReplicas_WatchFromVersionOfNewerReplica(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a", "b")
	ahead := h.replica()
	late, etcd := h.behind()
	h.awaitVisibility(ahead, late)

	etcd.hold(true)
	h.front.allow("ann", "a")
	ann := h.client(ahead, someone("ann"))
	ann.awaitNames("c1.a", "c2.a")
	from := ann.list().ResourceVersion

	opened := make(chan *stream, 1)
	go func() {
		w, err := h.client(late, someone("ann")).tryWatch(t.Context(), version(from))
		if err != nil {
			t.Error(err)
		}
		opened <- w
	}()
	select {
	case w := <-opened:
		opened <- w
	case <-time.After(500 * time.Millisecond): // The watch waits for the version, or has not started.
	}
	etcd.hold(false)
	w := <-opened
	if w == nil {
		return
	}
	h.deleteCluster("c4")
	h.deleteCluster("c1")
	w.expect("DELETED c1.a")
}

func TestReplicas_LaggingReplicaCatchesUpBeforeList(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a", "b")
	ahead := h.replica()
	late, etcd := h.behind()
	h.awaitVisibility(ahead, late)
	etcd.hold(true)
	h.front.allow("ann", "a")
	h.deleteCluster("c2")
	ann := h.client(ahead, someone("ann"))
	ann.awaitNames("c1.a")
	from := ann.list().ResourceVersion
	time.AfterFunc(200*time.Millisecond, func() { etcd.hold(false) })
	expectNames(t, h.client(late, someone("ann")).names(notOlderThan(from)), "c1.a")
}

// apart starts two replicas that follow the rules of two fronts, which grant the same at first: changes of one reach only the first replica, and
// those of the other, which lags, only the second.
func apart[R registry](h *hub, grant func(*front), replica func() R) (current, late *front, first, second R) {
	h.t.Helper()
	current, late = h.front, newFront(h.t)
	grant(current)
	grant(late)
	first = replica()
	h.front = late
	second = replica()
	for _, r := range []R{first, second} {
		h.client(r, someone("nobody")).list() // After that they write nothing themselves.
	}
	return current, late, first, second
}

// TestReplicas_ReplicaWithoutRulesWithholds: a replica that observes the rules late does not know the current ones. It shows nothing
// rather than what has been revoked, and does not put its older state into effect.
func TestReplicas_ReplicaWithoutRulesWithholds(t *testing.T) {
	h := twoSets(t)
	current, stale, first, second := apart(h, func(f *front) { f.allow("ann", "a", "b") }, h.replica)
	ann := h.client(second, someone("ann"))
	w := ann.watch(version(ann.list().ResourceVersion))

	current.allow("ann", "a")
	h.client(first, someone("ann")).awaitNames("c1.a", "c2.a")
	if got := w.nextChange(); got.Type != watch.Error || !strings.HasPrefix(got.Name, "Expired") {
		t.Errorf("got %v, want 410 Expired: the members have to be listed anew", got)
	}
	_, err := ann.tryList()
	if _, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry {
		t.Errorf("got %v, want 503 with a time to try again", err)
	}
	expectNames(t, h.client(second, admin).names(), "c1.a", "c2.a", "c1.b", "c4.b")

	stale.allow("ann", "a")
	ann.awaitNames("c1.a", "c2.a")
	expectNames(t, h.client(first, someone("ann")).names(), "c1.a", "c2.a")
}

// TestReplicas_ReplicaWithoutRulesWithholdsClusters: the rules of clusters have a history of their own, with the same behavior.
func TestReplicas_ReplicaWithoutRulesWithholdsClusters(t *testing.T) {
	h := twoSets(t)
	current, stale, first, second := apart(h, func(f *front) { f.allowClusters("ann", []string{"c3"}, []string{"a", "b"}) }, h.clusterReplica)
	ann := h.client(second, someone("ann"))
	w := ann.watch(version(ann.list().ResourceVersion))

	current.allowClusters("ann", nil, []string{"a"})
	h.client(first, someone("ann")).awaitNames("c1", "c2")
	if got := w.nextChange(); got.Type != watch.Error || !strings.HasPrefix(got.Name, "Expired") {
		t.Errorf("got %v, want 410 Expired: the clusters have to be listed anew", got)
	}
	if _, err := ann.tryList(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want 503", err)
	}
	expectNames(t, h.client(second, admin).names(), "c1", "c2", "c3", "c4")

	stale.allowClusters("ann", nil, []string{"a"})
	ann.awaitNames("c1", "c2")
	expectNames(t, h.client(first, someone("ann")).names(), "c1", "c2")
}

// TestReplicas_LaggingReplicaDoesNotRestoreRevoked: a replica that observes an older change late does not put that state into effect:
// every replica would show again what was revoked since.
func TestReplicas_LaggingReplicaDoesNotRestoreRevoked(t *testing.T) {
	h := twoSets(t)
	current, late, first, second := apart(h, func(f *front) { f.allow("ann", "a", "b") }, h.replica)
	ann := h.client(first, someone("ann"))
	w := ann.watch(version(ann.list().ResourceVersion))

	current.allow("bob", "b")
	current.allow("ann", "a")
	w.expect("DELETED c1.b", "DELETED c4.b")
	late.allow("bob", "b")
	h.eventually("the replica that lags sees the older change", func() (bool, string) {
		names := second.Visible.Rules.Latest().NamesFor(someone("bob"))
		return names.Has("b"), fmt.Sprint(names)
	})
	late.allow("ann", "a")
	h.client(second, someone("ann")).awaitNames("c1.a", "c2.a")
	h.deleteCluster("c1")
	w.expect("DELETED c1.a")
}

// TestReplicas_RevertedRulesTakeEffect: a return to earlier rules is a change, too, also for a replica that observes the changes
// late.
func TestReplicas_RevertedRulesTakeEffect(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	first, second := h.replica(), h.replica()
	h.awaitVisibility(first, second)
	one := h.client(first, someone("ann"))
	from := version(one.list().ResourceVersion)
	watches := []*stream{one.watch(from), h.client(second, someone("ann")).watch(from)}
	for range 3 {
		h.front.allow("ann", "a", "b")
		for _, w := range watches {
			w.expect("ADDED c1.b", "ADDED c4.b")
		}
		h.front.allow("ann", "a")
		for _, w := range watches {
			w.expect("DELETED c1.b", "DELETED c4.b")
		}
	}
}
