// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work applies the ManifestWorks of a cluster's namespace on the hub to the cluster, and prunes objects that they no longer list.
//
// One worker at a time syncs a work, and one writer writes its status. A worker may stop at any line: the next one starts from the state of the hub,
// the cluster and the memory, and each step can be repeated.
package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/drift"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/kinds"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/feedback"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
)

const (
	// workers is the number of works that are synced concurrently.
	workers = 5
	// resync is the interval after which a work is checked completely, for changes that no watch reports.
	resync = 5 * time.Minute
	// minRetry and maxRetry bound the delay before a failed operation is retried.
	minRetry, maxRetry = time.Second, 5 * time.Minute
	// maxWait bounds the delay before the agent checks again for a kind that the cluster does not serve, and for an object that is being deleted.
	// For all works of an agent together, discovery is requested at most once every kinds.RefreshEvery.
	maxWait = time.Minute
	// syncTimeout bounds one sync of a work, so that a server that does not respond delays no other work for longer.
	syncTimeout = 2 * time.Minute
	// cachedRules is the number of sets of condition rules that are cached in compiled form.
	cachedRules = 256
	// never is the grace period from which on nothing is evicted, as upstream.
	never = 100 * 365 * 24 * time.Hour
)

// Options configure an Agent.
type Options struct {
	// Works is the client of the cluster's namespace on the hub.
	Works     workclient.ManifestWorkInterface
	Namespace string
	// Cluster is the client with the agent's own rights in its cluster.
	Cluster dynamic.Interface
	Kinds   *kinds.Kinds
	Drift   *drift.Watcher
	Memory  memory.Memory
	// Executors check the rights of accounts of the cluster, and return clients with these rights.
	Executors Executors
	// HubHash is the hash of the hub.
	HubHash string
	// Only is the one namespace that works may have objects in; empty for the whole cluster. The memory has the same value.
	Only string
	// Own are the agent's objects, which no work may name.
	Own Own
	// Grace is the time for which a work may be missing on the hub before its objects are deleted; from 100 years on they never are.
	Grace time.Duration
	// Feedback configures how values of objects are reported to the hub.
	Feedback feedback.Options
	// Random returns a number in [0, 1), for jitter.
	Random func() float64
}

// Executors check what accounts of the cluster may do.
type Executors interface {
	// For returns the way to access an object in the cluster with the rights of an account. The error is an executor.Denied if the account does not
	// have these rights.
	For(ctx context.Context, account *workv1.ManifestWorkSubjectServiceAccount, access executor.Access) (executor.AccountClient, error)
	// Self returns why the agent itself must not do something for a work, even if RBAC allows it.
	Self(ctx context.Context, access executor.Access) error
}

// Agent applies works to a cluster.
type Agent struct {
	Options
	// life is the context of Run: watches outlive the sync of a work that started them.
	life      context.Context
	hub       hubWorks
	evaluator evaluator
	queue     workqueue.TypedRateLimitingInterface[string]
	informer  cache.SharedIndexInformer
	claims    claims

	mu     sync.Mutex
	states map[string]*state
	// deletions are the deletions of records that are in progress, by the UID of their owners.
	deletions   map[types.UID]*deletion
	stepTimeout time.Duration
	// firstRetry is the delay before the first retry of a manifest, and firstWait the delay before the first check of an object that is being
	// deleted.
	firstRetry, firstWait time.Duration
	// lacking are the works with manifests of a kind that the cluster does not serve.
	lacking sets.Set[string]
}

// New returns an agent that has sent no requests yet.
func New(o Options) *Agent {
	a := &Agent{
		Options: o, hub: hubWorks{o.Works},
		evaluator: evaluator{feedback: o.Feedback, rules: rules.NewCache(cachedRules), paces: &paces{now: time.Now}},
		states:    map[string]*state{}, deletions: map[types.UID]*deletion{}, lacking: sets.New[string](),
		stepTimeout: stepTimeout, firstRetry: minRetry, firstWait: minRetry / 4,
	}
	a.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry/10, maxRetry))
	// Changes of several objects of a work within a short time are handled by one sync.
	o.Drift.Changed = func(work string) { a.queue.AddAfter(work, minRetry/10) }
	a.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			return o.Works.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return o.Works.Watch(ctx, options)
		},
	}, &workv1.ManifestWork{}, 0, cache.Indexers{})
	return a
}

// Run syncs works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			a.queue.Add(key.Name)
		}
	}
	if err := a.informer.SetTransform(func(object any) (any, error) {
		if work, ok := object.(*workv1.ManifestWork); ok {
			work.ManagedFields = nil
			// Where works are custom resources, works from a list have a kind, and works from a watch do not.
			work.TypeMeta = metav1.TypeMeta{}
		}
		return object, nil
	}); err != nil {
		return err
	}
	if _, err := a.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer a.Drift.Wait()
	defer stop()
	a.life = ctx
	var running sync.WaitGroup
	defer running.Wait()
	defer a.queue.ShutDown()
	running.Go(func() { a.informer.RunWithContext(ctx) })
	// Which works are missing is only known after the cache has synced.
	if !cache.WaitForCacheSync(ctx.Done(), a.informer.HasSynced) {
		return nil
	}
	for range workers {
		running.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	for said := (&repeat.Said{}); ; {
		a.evaluator.paces.forget(a.isKnown)
		said.Result(ctx, "deleting the objects of works that are missing on the hub", a.evict(ctx))
		if !repeat.Sleep(ctx, repeat.Jittered(min(max(a.Grace/10, time.Second), resync), a.Random)) {
			return nil
		}
	}
}

func (a *Agent) next(ctx context.Context) bool {
	name, end := a.queue.Get()
	if end {
		return false
	}
	defer a.queue.Done(name)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("work", name))
	limited, cancel := context.WithTimeout(ctx, syncTimeout)
	again, err := a.syncOrFinalize(limited, name)
	cancel()
	switch {
	case ctx.Err() != nil:
	case isStale(err):
		// A newer version arrives as an event; if it has arrived already, this is the next sync.
		a.queue.AddAfter(name, minRetry/10)
	case err != nil:
		klog.FromContext(ctx).Error(err, "Retrying a work")
		a.queue.AddRateLimited(name)
	default:
		a.queue.Forget(name)
		if again > 0 {
			a.queue.AddAfter(name, again)
		}
	}
	return true
}

// syncOrFinalize syncs or finalizes a work. It converts a panic to an error, so that a work that triggers a bug of the agent does not block other works.
func (a *Agent) syncOrFinalize(ctx context.Context, name string) (again time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	work, err := a.cached(name)
	if err != nil {
		return 0, err
	}
	if work == nil {
		a.forget(name)
		return 0, nil
	}
	if work.DeletionTimestamp != nil {
		return a.finish(ctx, work)
	}
	return a.sync(ctx, work)
}

// cached returns a copy of a work from the cache, or nil if the cache does not have it.
func (a *Agent) cached(name string) (*workv1.ManifestWork, error) {
	object, exists, err := a.informer.GetStore().GetByKey(a.Namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	return object.(*workv1.ManifestWork).DeepCopy(), nil
}

// state holds the observations of a work by one process. It may be lost at any time.
type state struct {
	work   string
	uid    string
	record *memory.Record
	// isNew is whether this process observed the work before any object was created for it.
	isNew     bool
	manifests map[apply.Target]*applyResult
	// generation is the generation of the work that the results are for.
	generation int64
	firstRetry time.Duration
	random     func() float64
	// pruning is the deletion of objects that the manifests no longer list.
	pruning *deletion
	// reported is the time of the last write of the status.
	reported time.Time
	// waits is the backoff for objects that are being deleted, and kinds the one for kinds that the cluster does not serve.
	waits, kinds repeat.Backoff
}

func (a *Agent) state(work *workv1.ManifestWork) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.states[work.Name]
	if s == nil || s.uid != string(work.UID) {
		s = &state{work: work.Name, uid: string(work.UID), manifests: map[apply.Target]*applyResult{}, firstRetry: a.firstRetry, random: a.Random, pruning: &deletion{timeout: a.stepTimeout},
			waits: repeat.Backoff{Shortest: a.firstWait, Longest: max(a.firstWait, maxWait), Random: a.Random},
			kinds: repeat.Backoff{Shortest: minRetry, Longest: maxWait, Random: a.Random}}
		a.states[work.Name] = s
	}
	return s
}

// of returns the result of the last attempt to apply a manifest.
func (s *state) of(one *item) *applyResult {
	last := s.manifests[one.manifest.Target]
	if last == nil {
		last = &applyResult{waits: repeat.Backoff{Shortest: s.firstRetry, Longest: maxRetry, Random: s.random},
			repairs: repairs{delays: repeat.Backoff{Shortest: minRepair, Longest: maxRepair, Random: s.random}}}
		s.manifests[one.manifest.Target] = last
	}
	return last
}

func (a *Agent) isKnown(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.states[name] != nil
}

func (a *Agent) forget(name string) {
	a.Drift.Retain(name, nil)
	a.claims.forget(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.states, name)
	a.lacking.Delete(name)
}

func (a *Agent) setLacking(work string, lacking bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lacking {
		a.lacking.Insert(work)
	} else {
		a.lacking.Delete(work)
	}
}

// refreshKinds requeues the works that lack a kind, after a CustomResourceDefinition was applied that may define it. The API server serves the new
// kind only a moment later.
func (a *Agent) refreshKinds() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for work := range a.lacking {
		a.queue.AddAfter(work, kinds.RefreshEvery)
	}
}
