// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/watch"
)

const (
	// headStart is the maximum time to wait for watches before the first reconcile.
	headStart = 5 * time.Second
	// resyncInterval is the time after which watches restart, with a reconcile, and twice that the maximum: changes that a server did not report, or no longer
	// reports, such as after a restore from a backup, are found then.
	resyncInterval = 4 * time.Hour
	// unwatchedInterval is the interval of reconciles where no watch reports changes, such as while a watch does not start.
	unwatchedInterval = 10 * time.Minute
)

// objectSet is a set of objects of one kind on a cluster.
type objectSet struct {
	kind         apply.Mapping
	label, field string
}

// listening is closed when watches have started.
type listening <-chan struct{}

// audience is the receiver of the events of one cluster's watches.
type audience struct {
	*observations
	// every is the interval between restarts of the watches: all at one time, so that one reconcile follows, and at a different time for each
	// cluster.
	every time.Duration
	// missing limits the reconciles while a watch does not start.
	missing *rate.Limiter
}

// listen starts all watches.
func listen(ctx context.Context, c metadata.Interface, s *observations, all []objectSet) listening {
	a := &audience{s, resyncInterval + time.Duration(rand.Int64N(int64(resyncInterval))), rate.NewLimiter(rate.Every(unwatchedInterval), 1)}
	var first sync.WaitGroup
	for _, w := range all {
		first.Add(1)
		go w.follow(ctx, c.Resource(w.kind.GVR()), a, first.Done)
	}
	tried := make(chan struct{})
	go func() { first.Wait(); close(tried) }()
	return tried
}

// wait waits until the watches have started. What is read before has to be read again. If they do not start, wait returns after headStart.
func (l listening) wait(ctx context.Context) {
	select {
	case <-l:
	case <-time.After(headStart):
	case <-ctx.Done():
	}
}

// follow watches objects until the context ends: it reports each object that is created, changed or deleted, and that it may have missed changes. A
// cluster with more objects than it claims costs no memory. No list is repeated while a watch lasts, nor when it ends and the server still has its
// resource version, except that all watches restart after some hours. If a watch cannot be started for a minute, such as a forbidden one, follow causes
// a reconcile now and then. It calls tried after the first attempt to start.
func (w objectSet) follow(ctx context.Context, objects watch.ResourceClient, a *audience, tried func()) {
	once := sync.OnceFunc(tried)
	defer once()
	watch.Run(ctx, objects, watch.Options{LabelSelector: w.label, FieldSelector: w.field, FromList: true, RestartInterval: a.every}, watch.Handler{
		Event: func(o *metav1.PartialObjectMetadata, deleted bool) {
			id := apply.ID{GroupKind: w.kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
			if deleted { // or it no longer has the label
				a.observe(id, nil)
			} else {
				a.observe(id, o)
			}
		},
		Started: func() { a.markLost(); once() },
		Failed: func(_ error, delay time.Duration) {
			if delay >= watch.MaxDelay && a.missing.Allow() {
				a.markLost()
			}
			once()
		},
	})
}
