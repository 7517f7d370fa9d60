// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// plains holds the plain clusters of the folder. A cluster is used by one test at a time, and starts when it is first needed.
var plains = struct {
	*sync.Cond
	free   []*plain
	issuer int
	more   int // clusters that have not started
}{Cond: sync.NewCond(&sync.Mutex{}), more: 4}

// plain is a plain cluster, with the objects that it had when it started.
type plain struct {
	*localhub.Hub
	issuer string
	there  []string
}

// newPlains returns n plain clusters without objects of other tests. A test that needs several gets all of them by one call: two tests could
// otherwise wait for each other.
func newPlains(t *testing.T, n int) []*plain {
	t.Helper()
	plains.L.Lock()
	for len(plains.free)+plains.more < n {
		plains.Wait()
	}
	has := min(n, len(plains.free))
	got := slices.Clone(plains.free[:has])
	plains.free, plains.more = plains.free[has:], plains.more-(n-has)
	for range n - has {
		plains.issuer++
		got = append(got, &plain{issuer: fmt.Sprintf("https://oidc.eks.eu-west-1.amazonaws.com/id/PLAIN%d", plains.issuer)})
	}
	plains.L.Unlock()

	t.Cleanup(func() {
		for _, p := range got {
			if p.Hub != nil {
				clean(p.Hub, p.there)
			}
		}
		plains.L.Lock()
		defer plains.L.Unlock()
		for _, p := range got {
			if p.Hub != nil {
				plains.free = append(plains.free, p)
			} else {
				plains.more++
			}
		}
		plains.Broadcast()
	})
	var starting sync.WaitGroup
	errs := make([]error, n)
	for i, p := range got {
		if p.Hub == nil {
			starting.Go(func() { errs[i] = p.start() })
		}
	}
	starting.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// start starts the cluster, with kube-controller-manager, which aggregates roles, creates pods of Deployments, and empties namespaces.
func (p *plain) start() (err error) {
	config := harness.HubConfig(harness.Lasting().TempDir())
	config.Plain, config.Issuer = true, p.issuer
	h, err := localhub.Start(harness.Lasting().Context(), config)
	if err != nil {
		return err
	}
	harness.Lasting().Cleanup(h.Kill)
	p.there = objectsOf(h)
	p.Hub = h
	return nil
}

// lent is a hub that one test at a time uses, with controllers that the test starts with flags of its own. The test calls t.Parallel.
type lent struct {
	turn   sync.Mutex
	config localhub.Config
	hub    *localhub.Hub
	there  []string
}

// controlled is a hub for tests of the flags and parts of hub-controller-manager.
var controlled lent

// acquire waits for the hub, calls begin unless it is nil, starts the controllers, and returns the hub. What the test creates is deleted when it ends.
func (l *lent) acquire(t *testing.T, begin func(*localhub.Hub), change func(*localhub.Config)) *localhub.Hub {
	t.Helper()
	l.turn.Lock()
	t.Cleanup(l.turn.Unlock)
	if l.hub == nil {
		if l.config.Dir == "" {
			l.config = harness.HubConfig(harness.Lasting().TempDir())
		}
		l.config.WithoutHubControllerManager, l.config.HubControllerManagerArgs = true, nil
		h := harness.Must(localhub.Start(t.Context(), l.config))(t)
		harness.Lasting().Cleanup(h.Kill)
		l.hub, l.there = h, objectsOf(h)
	}
	t.Cleanup(func() {
		const names = `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}`
		for _, work := range strings.Fields(run(l.hub, "get", "manifestworks", "-A", "-o", names)) {
			namespace, name, _ := strings.Cut(work, "/")
			run(l.hub, "patch", "manifestwork", name, "-n", namespace, "--type=merge", "-p", withoutFinalizers)
		}
		run(l.hub, "delete", "managedclusters", "--all", "--timeout="+harness.Timeout.String())
		l.hub.StopHubControllerManager()
		clean(l.hub, l.there)
	})
	if begin != nil {
		begin(l.hub)
	}
	return l.start(t, change)
}

// start starts the controllers, and stops those that run before.
func (l *lent) start(t *testing.T, change func(*localhub.Config)) *localhub.Hub {
	t.Helper()
	config := l.config
	config.WithoutHubControllerManager = false
	if change != nil {
		change(&config)
	}
	l.hub.StopHubControllerManager()
	return harness.Must(localhub.Start(t.Context(), config))(t)
}

// run runs kubectl outside of a test and returns its output. An error fails the run.
func run(h *localhub.Hub, args ...string) string {
	out, err := h.Kubectl(context.Background(), args...).CombinedOutput()
	if err != nil {
		harness.Lasting().Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		return ""
	}
	return string(out)
}

// objectsOf returns the names of the cluster's objects that others depend on.
func objectsOf(h *localhub.Hub) []string {
	return strings.Fields(run(h, "get", "clusterrolebindings,clusterroles,customresourcedefinitions,namespaces,nodes", "-o", "name"))
}

// withoutFinalizers is a patch for objects whose finalizers only agents remove, which have ended.
const withoutFinalizers = `{"metadata":{"finalizers":null}}`

// clean deletes the objects that are not in there, with their dependents.
func clean(h *localhub.Hub, there []string) {
	const works = "customresourcedefinition.apiextensions.k8s.io/appliedmanifestworks.work.open-cluster-management.io"
	surplus := slices.DeleteFunc(objectsOf(h), func(name string) bool {
		return slices.Contains(there, name) || strings.HasPrefix(name, "namespace/kube-") || name == "namespace/default"
	})
	if slices.Contains(surplus, works) {
		for _, work := range strings.Fields(run(h, "get", "appliedmanifestworks", "-o", "name")) {
			run(h, "patch", work, "--type=merge", "-p", withoutFinalizers)
		}
	}
	if len(surplus) > 0 {
		run(h, append([]string{"delete", "--ignore-not-found", "--timeout=" + harness.Timeout.String()}, surplus...)...)
	}
}
