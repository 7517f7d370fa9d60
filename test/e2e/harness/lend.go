// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/await"
)

// Pool lends hubs of a configuration, each to one test at a time. It starts a hub if none is free and the limit allows it.
type Pool struct {
	config func(*localhub.Options)
	// taking is locked by the test that takes hubs.
	taking  sync.Mutex
	free    chan *lentHub
	started chan struct{}
}

// lentHub is a hub of a pool, with the objects that it has while no test uses it.
type lentHub struct {
	*localhub.Instance
	own sets.Set[string]
}

// NewPool returns a pool that starts at most most hubs.
func NewPool(most int, config func(*localhub.Options)) *Pool {
	p := &Pool{config: config}
	p.limit(most)
	return p
}

// limit sets the maximum number of hubs of the pool. It must be called before a hub is lent.
func (p *Pool) limit(most int) {
	p.free, p.started = make(chan *lentHub, most), make(chan struct{}, most)
}

var (
	lentHubs = NewPool(1, func(c *localhub.Options) {
		c.WithoutHubControllerManager = true
		c.FrontArgs = []string{"--enable-bootstrap-token-auth"}
	})
	lentClusters = NewPool(1, func(c *localhub.Options) { c.Plain = true })
)

// LendAtMost sets how many hubs and how many plain clusters are lent at the same time, 1 by default. A hub costs ten processor seconds, so a higher
// limit is for folders where many tests would wait for a hub. TestMain calls it before Run.
func LendAtMost(n int) {
	lentHubs.limit(n)
	lentClusters.limit(n)
}

// LendHub returns a hub without hub-controller-manager that no other test uses until this test ends. Objects that the test creates are deleted when
// it ends; the test must not change objects that existed before it. The test may stop and kill servers of the hub, if they serve again when the test
// ends. A test that needs a hub-controller-manager starts and stops it, or uses Relaunch. The test runs in parallel with others, as with Hub. A test
// that also needs a plain cluster calls LendHub first.
func LendHub(t *testing.T) *localhub.Instance {
	t.Helper()
	parallel(t)
	OnlyLocal(t, "a hub of its own, whose processes it can start and end")
	return lentHubs.Lend(t, 1)[0]
}

// LendCluster returns a plain cluster that no other test uses until this test ends, as LendHub returns a hub.
func LendCluster(t *testing.T) *localhub.Instance {
	t.Helper()
	parallel(t)
	return lentClusters.Lend(t, 1)[0]
}

// Relaunch is Pool.Relaunch for hubs that LendHub returns.
func Relaunch(t *testing.T, lent *localhub.Instance, change func(*localhub.Options)) *localhub.Instance {
	t.Helper()
	return lentHubs.Relaunch(t, lent, change)
}

// Relaunch runs a lent hub with a different configuration until the test ends, and returns the hub with that configuration once the front serves the
// APIs of hub-apiserver. It restarts our servers whose flags change, starts a hub-controller-manager unless the configuration excludes it, and grants
// the rights of components. It does not change kube-apiserver and etcd.
func (p *Pool) Relaunch(t *testing.T, lent *localhub.Instance, change func(*localhub.Options)) *localhub.Instance {
	t.Helper()
	relaunch := func(ctx context.Context, change func(*localhub.Options)) (*localhub.Instance, error) {
		config := HubConfig(lent.Dir())
		p.config(&config)
		change(&config)
		if len(config.Components) > 0 {
			return localhub.Start(ctx, config)
		}
		h, err := localhub.Open(config) // applies no manifests, as they have not changed
		if err != nil {
			return nil, err
		}
		if err := errors.Join(h.StartHubAPIServer(ctx, 0), h.RouteFront(ctx, 0)); err != nil || config.WithoutHubControllerManager {
			return h, err
		}
		return h, h.StartHubControllerManager(ctx)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // the hub is not lent again
		}
		lent.StopHubControllerManager()
		if _, err := relaunch(last.Context(), func(*localhub.Options) {}); err != nil {
			t.Errorf("the lent hub does not serve again: %v", err)
		}
	})
	return Must(relaunch(t.Context(), change))(t)
}

// Lend returns hubs that no other test uses until this test ends, as LendHub does, but the test must call t.Parallel. A test that needs several hubs
// gets all of them by one call, as two tests could otherwise wait for each other.
func (p *Pool) Lend(t *testing.T, n int) (hubs []*localhub.Instance) {
	t.Helper()
	all, errs := make([]*lentHub, n), make([]error, n)
	p.taking.Lock()
	for i := range all {
		select {
		case all[i] = <-p.free:
		default:
			select {
			case all[i] = <-p.free:
			case p.started <- struct{}{}:
			}
		}
	}
	p.taking.Unlock()
	t.Cleanup(func() {
		var ending sync.WaitGroup
		for _, h := range all {
			ending.Go(func() { p.giveBack(t, h) })
		}
		ending.Wait()
	})
	var starting sync.WaitGroup
	for i := range all {
		if all[i] == nil {
			starting.Go(func() { all[i], errs[i] = p.start() })
		}
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		hubs = append(hubs, h.Instance)
	}
	return hubs
}

// giveBack returns a hub to the pool, or nil if the hub has not started.
func (p *Pool) giveBack(t *testing.T, h *lentHub) {
	if h != nil && !t.Failed() { // the state of the hub is unknown after a failure
		err := h.reset()
		if err == nil {
			p.free <- h
			return
		}
		t.Errorf("the lent hub cannot be used again: %v", err)
	}
	if h != nil {
		h.Kill()
		retainLogs(t, h.Dir())
	}
	<-p.started
}

// retainLogs moves the logs of the servers of a hub out of its folder, which is removed when the tests of the package end.
func retainLogs(t *testing.T, hub string) {
	dir, err := os.MkdirTemp("", "clusterhub-e2e-")
	if err == nil {
		err = os.Rename(filepath.Join(hub, "logs"), filepath.Join(dir, "logs"))
	}
	if err != nil {
		t.Logf("the logs of the lent hub are lost: %v", err)
		return
	}
	t.Logf("The logs of the lent hub are kept in %s", filepath.Join(dir, "logs"))
}

func (p *Pool) start() (*lentHub, error) {
	config := HubConfig(last.TempDir())
	p.config(&config)
	ctx, cancel := context.WithTimeout(last.Context(), Timeout)
	defer cancel()
	hub, err := localhub.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	last.Cleanup(hub.Kill)
	h := &lentHub{Instance: hub, own: sets.New[string]()}
	err = h.each(ctx, nil, func(_ metadata.ResourceInterface, id string, _ *metav1.PartialObjectMetadata) error {
		h.own.Insert(id)
		return nil
	})
	return h, err
}

// notReset lists the groups of objects that Kubernetes creates and deletes by itself.
var notReset = []string{"apiregistration.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io"}

// each calls a function for each object of the given resources, or of all resources if only is nil, with a client of its resource.
func (h *lentHub) each(ctx context.Context, only sets.Set[string], do func(metadata.ResourceInterface, string, *metav1.PartialObjectMetadata) error) error {
	config := h.AdminConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	lists, err := discovery.ServerPreferredResources(client.Discovery())
	if err != nil {
		return err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if slices.Contains(notReset, gv.Group) || slices.Contains([]string{"clustertrustbundles", "endpoints", "events"}, r.Name) ||
				!slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || only != nil && !only.Has(gv.Group+"/"+r.Name) {
				continue
			}
			of := objects.Resource(gv.WithResource(r.Name))
			found, err := of.List(ctx, metav1.ListOptions{})
			if err != nil {
				if apierrors.IsNotFound(err) {
					continue // a CustomResourceDefinition is being deleted
				}
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			for _, o := range found.Items {
				// kube-controller-manager creates these in each namespace, and the ServiceAccounts of its controllers.
				if r.Name == "serviceaccounts" && (o.Name == "default" || o.Namespace == "kube-system") || r.Name == "configmaps" && o.Name == "kube-root-ca.crt" {
					continue
				}
				if err := do(of.Namespace(o.Namespace), strings.Join([]string{gv.Group, r.Name, o.Namespace, o.Name}, "/"), &o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reset deletes the objects that a test created, and waits until they are gone. It does not wait for objects that a controller of Kubernetes
// recreates.
func (h *lentHub) reset() error {
	var left []string
	var all sets.Set[types.UID]
	// Only the first pass covers all resources, as each resource costs the servers a request.
	var resources sets.Set[string]
	err := await.Until(last.Context(), Timeout, func(ctx context.Context) (bool, error) {
		left = nil
		first := all == nil
		if first {
			all = sets.New[types.UID]()
		}
		remaining := sets.New[string]()
		err := h.each(ctx, resources, func(client metadata.ResourceInterface, id string, o *metav1.PartialObjectMetadata) error {
			if first && !h.own.Has(id) {
				all.Insert(o.UID)
			}
			if !all.Has(o.UID) {
				return nil
			}
			left = append(left, id)
			fields := strings.Split(id, "/")
			remaining.Insert(fields[0] + "/" + fields[1])
			var err error
			if len(o.Finalizers) > 0 {
				_, err = client.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
			if o.DeletionTimestamp == nil {
				err = errors.Join(err, client.Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			}
			if err != nil && !apierrors.IsNotFound(err) {
				left = append(left, err.Error())
			}
			return nil
		})
		if err != nil {
			left = append(left, err.Error())
			if first {
				all = nil
			}
			return false, nil
		}
		resources = remaining
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: left are %v", err, left)
	}
	return nil
}
