// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// derivation is the storage of the objects of one kind. They are computed from the clusters and sets in etcd. Its only reader is the cacher, which
// serves all others. It follows one etcd watch over the directory that holds both, so that it observes their changes in the order of their revisions.
type derivation struct {
	kind Definition
	// source is a storage whose watch returns clusters, sets and visibility revisions alike.
	source    storage.Interface
	revisions Observer

	mu sync.Mutex
	// current was built by the last list, for the watch that follows it.
	current *generation
}

// generation is one unbroken run of the source's watch.
type generation struct {
	index  ObjectIndex
	events watch.Interface
	// at is the version from which a watch can continue, or "" while one is running or was interrupted.
	at string
	// last is the version up to which the current watch has delivered everything.
	last string
	// clock represents the visibility revision among the objects: see position.Resource.NewClock.
	clock generic.Object
	// digest is the digest of the last visibility revision.
	digest string
}

var _ storage.Interface = &derivation{}

var errReadOnly = errors.New("objects that are computed from clusters and sets cannot be written")

var errReadThroughCache = errors.New("objects that are computed from clusters and sets are read through their cache")

func (s *derivation) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *derivation) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return errReadOnly
}

func (s *derivation) Delete(context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object, storage.DeleteOptions) error {
	return errReadOnly
}

func (s *derivation) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return errReadOnly
}

// Get is not called: the registry reads through the cacher.
func (s *derivation) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return storage.NewInternalError(errReadThroughCache)
}

func (s *derivation) Stats(ctx context.Context) (storage.Stats, error) { return storage.Stats{}, nil }

func (s *derivation) ReadinessCheck() error { return s.source.ReadinessCheck() }

func (s *derivation) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision returns 0: the cacher's own history limits how far back an object can be read.
func (s *derivation) CompactRevision() int64 { return 0 }

// RequestWatchProgress makes etcd report the progress of the source's watch, which Watch passes on as a bookmark.
func (s *derivation) RequestWatchProgress(ctx context.Context) error {
	return s.source.RequestWatchProgress(s.sourceContext(ctx))
}

// GetCurrentResourceVersion returns the end of etcd's current revision: a list at this version has every write that was acknowledged before, by any
// replica.
func (s *derivation) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := s.source.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, err
	}
	return position.Version(revision, position.End), nil
}

// IsWatchListSemanticsUnSupported makes the cacher list before it watches: a watch alone cannot start a generation.
func (s *derivation) IsWatchListSemanticsUnSupported() bool { return true }

// GetList rebuilds the objects. Only the cacher calls it.
func (s *derivation) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	if key != s.kind.Root() || opts.ResourceVersion != "" {
		return storage.NewInternalError(errReadThroughCache)
	}
	list, err := meta.ListAccessor(listObj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.events.Stop()
		s.current = nil
	}
	began := time.Now()
	g, err := s.build(ctx, listObj)
	rebuildSeconds.WithLabelValues(s.kind.GroupResource.String()).Observe(time.Since(began).Seconds())
	if err != nil {
		return err
	}
	s.current = g
	list.SetResourceVersion(g.at)
	return nil
}

// build reads all clusters and sets, and leaves the watch open for later changes.
func (s *derivation) build(ctx context.Context, list runtime.Object) (*generation, error) {
	itemsPtr, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	items := reflect.ValueOf(itemsPtr).Elem()
	add := func(object generic.Object) { items.Set(reflect.Append(items, reflect.ValueOf(object).Elem())) }
	yes := true
	events, err := s.source.Watch(s.sourceContext(context.WithoutCancel(ctx)), position.FleetPrefix, storage.ListOptions{
		Recursive:         true,
		ProgressNotify:    true,
		SendInitialEvents: &yes,
		Predicate:         everything(),
	})
	if err != nil {
		return nil, err
	}
	g := &generation{index: s.kind.NewIndex(), events: events}
	var ruled uint64
	sets := map[string]uint64{}
	clusters := map[string]uint64{}
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			events.Stop()
			return nil, apierrors.FromObject(event.Object)
		}
		version, err := s.Versioner().ObjectResourceVersion(event.Object)
		if err != nil {
			events.Stop()
			return nil, err
		}
		switch obj := event.Object.(type) {
		case *cluster.ManagedCluster:
			if event.Type != watch.Bookmark {
				g.index.Set(obj)
				clusters[obj.Name] = version
				continue
			}
		case *cluster.ManagedClusterSet:
			g.index.Set(obj)
			sets[obj.Name] = version
			continue
		case *visibility.Revision:
			g.digest, ruled = s.kind.Digest(obj), position.Version(version, 0)
			g.clock = s.kind.NewClock(ruled)
			continue
		default:
			events.Stop()
			return nil, fmt.Errorf("unexpected %T under %s", obj, position.FleetPrefix)
		}
		// The bookmark that ends the initial events.
		now := position.Version(version, position.End)
		g.at = strconv.FormatUint(now, 10)
		g.index.Each(func(object generic.Object, clusterName, setName string) {
			// Which of the two moved it last is unknown; the end of the later one's revision is not less than any version that was returned for it.
			position.SetVersion(object, position.Version(max(clusters[clusterName], sets[setName]), position.End))
			add(object)
		})
		if g.clock != nil {
			// The rules are valid from the revision of the clock on, which initial events show to a watch.
			s.revisions.Reset(ruled, g.digest)
			add(g.clock)
		} else {
			s.revisions.Reset(now, "")
		}
		klog.V(2).InfoS("Computed the derived resources", "resource", s.kind.GroupResource, "objects", items.Len(), "clusters", len(clusters), "sets", len(sets), "revision", version)
		return g, nil
	}
	return nil, errors.New("the watch of clusters and sets ended before it began")
}

// Watch translates the changes of clusters and sets, from where the last list or watch ended.
func (s *derivation) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.current
	if key != s.kind.Root() || g == nil || g.at == "" || opts.ResourceVersion != g.at {
		return nil, apierrors.NewResourceExpired("the objects must be recomputed")
	}
	g.at, g.last = "", g.at
	t := &translation{derivation: s, generation: g, result: make(chan watch.Event, 100), stop: make(chan struct{})}
	go t.run(ctx)
	return t, nil
}

func everything() storage.SelectionPredicate {
	p := storage.Everything
	p.AllowWatchBookmarks = true
	return p
}

// sourceContext makes the watch and the requests for its progress share one stream to etcd, and keeps that stream separate from other watches.
func (s *derivation) sourceContext(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.Pairs("source", s.kind.String()))
}
