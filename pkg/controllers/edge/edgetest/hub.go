// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgetest has a hub for tests of controllers of edge deployments: it stores objects, and delivers changes to processes.
package edgetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// FakeHub stores objects. Generations count specs, as on a hub.
type FakeHub struct {
	client.WithWatch
	t    *testing.T
	uids int
	// Allows answers SubjectAccessReviews, and Refuse may answer a write in place of the hub.
	Allows func(*authorizationv1.SubjectAccessReviewSpec) bool
	Refuse func(verb string, obj client.Object) error
	// Writes are all writes, as "verb kind namespace/name".
	Writes []string
}

// New returns an empty hub. Its cache looks up objects by indexes.
func New(t *testing.T, indexes ...func(*fake.ClientBuilder)) *FakeHub {
	t.Helper()
	scheme := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(authorizationv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme, edgev1alpha1.AddToScheme, workv1.AddToScheme)
	if err := all.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &FakeHub{t: t}
	write := func(verb string, obj client.Object, do func() error) error {
		if h.Refuse != nil {
			if err := h.Refuse(verb, obj); err != nil {
				return err
			}
		}
		err := do()
		if err == nil {
			h.Writes = append(h.Writes, fmt.Sprintf("%s %T %s/%s", verb, obj, obj.GetNamespace(), obj.GetName()))
		}
		return err
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, index := range indexes {
		index(builder)
	}
	h.WithWatch = interceptor.NewClient(builder.WithStatusSubresource(&clusterv1.ManagedCluster{}, &edgev1alpha1.EdgeNode{},
		&edgev1alpha1.DeploymentPolicy{}, &edgev1alpha1.DeploymentPattern{}, &edgev1alpha1.EdgePlacement{}, &workv1.ManifestWork{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, is := obj.(*authorizationv1.SubjectAccessReview); is {
				review.Status.Allowed = h.Allows != nil && h.Allows(&review.Spec)
				return nil
			}
			h.uids++
			obj.SetUID(types.UID(fmt.Sprint("uid-", h.uids)))
			obj.SetGeneration(1)
			return write("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			obj.SetGeneration(obj.GetGeneration() + 1)
			return write("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			before := obj.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
				return err
			}
			return write("patch", obj, func() error {
				if err := c.Patch(ctx, obj, patch, opts...); err != nil || equality.Semantic.DeepEqual(specOf(before), specOf(obj)) {
					return err
				}
				obj.SetGeneration(before.GetGeneration() + 1)
				return c.Update(ctx, obj)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write("patch "+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	return h
}

// specOf returns the part of an object that generations count.
func specOf(obj client.Object) any {
	switch obj := obj.(type) {
	case *edgev1alpha1.EdgePlacement:
		return obj.Spec
	case *workv1.ManifestWork:
		return obj.Spec
	}
	return nil
}

// Make creates objects, with their status.
func (h *FakeHub) Make(objs ...client.Object) {
	h.t.Helper()
	for _, obj := range objs {
		status := obj.DeepCopyObject().(client.Object)
		if err := h.Create(h.t.Context(), obj); err != nil {
			h.t.Fatal(err)
		}
		status.SetUID(obj.GetUID())
		status.SetGeneration(1)
		status.SetResourceVersion(obj.GetResourceVersion())
		if err := h.Status().Update(h.t.Context(), status); client.IgnoreNotFound(err) != nil {
			h.t.Fatal(err)
		}
	}
}

// Change writes an object as a user or an agent does, spec and status.
func Change[O any, T interface {
	*O
	client.Object
}](h *FakeHub, obj T, change func(T)) {
	h.t.Helper()
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		h.t.Fatal(err)
	}
	change(obj)
	status := obj.DeepCopyObject().(T)
	if err := h.Update(h.t.Context(), obj); err != nil {
		h.t.Fatal(err)
	}
	status.SetResourceVersion(obj.GetResourceVersion())
	status.SetGeneration(obj.GetGeneration())
	if err := h.Status().Update(h.t.Context(), status); client.IgnoreNotFound(err) != nil {
		h.t.Fatal(err)
	}
}

// Watch is a kind, and the handler of its events.
type Watch struct {
	Kind    client.Object
	Handler handler.EventHandler
}

// Process runs a reconciler on a hub.
type Process struct {
	*FakeHub
	Queue      *Queue
	reconciler reconcile.Reconciler
	watches    []Watch
	known      []map[client.ObjectKey]client.Object
	// Later has the delays that the reconciler has requested, by request.
	Later map[reconcile.Request]time.Duration
}

// Queue is a queue without time.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	all []reconcile.Request
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(r reconcile.Request) {
	if !slices.Contains(q.all, r) {
		q.all = append(q.all, r)
	}
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

// Start returns a process that knows nothing yet.
func (h *FakeHub) Start(r reconcile.Reconciler, watches []Watch) *Process {
	p := &Process{FakeHub: h, Queue: &Queue{}, reconciler: r, watches: watches, Later: map[reconcile.Request]time.Duration{}}
	for range watches {
		p.known = append(p.known, map[client.ObjectKey]client.Object{})
	}
	return p
}

// tell delivers all changes, and reports whether there were any.
func (p *Process) tell() (delivered bool) {
	p.t.Helper()
	ctx := p.t.Context()
	for i, w := range p.watches {
		gvk, err := p.GroupVersionKindFor(w.Kind)
		if err != nil {
			p.t.Fatal(err)
		}
		gvk.Kind += "List"
		obj, err := p.Scheme().New(gvk)
		if err != nil {
			p.t.Fatal(err)
		}
		list := obj.(client.ObjectList)
		if err := p.List(ctx, list); err != nil {
			p.t.Fatal(err)
		}
		now := map[client.ObjectKey]client.Object{}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			obj := o.DeepCopyObject().(client.Object)
			now[client.ObjectKeyFromObject(obj)] = obj
			return nil
		})
		before := p.known[i]
		p.known[i] = now
		for key, obj := range now {
			switch was := before[key]; {
			case was == nil:
				w.Handler.Create(ctx, event.CreateEvent{Object: obj}, p.Queue)
			case !equality.Semantic.DeepEqual(was, obj):
				w.Handler.Update(ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: obj}, p.Queue)
			default:
				continue
			}
			delivered = true
		}
		for key, was := range before {
			if now[key] == nil {
				w.Handler.Delete(ctx, event.DeleteEvent{Object: was}, p.Queue)
				delivered = true
			}
		}
	}
	return delivered
}

// Settle runs processes until none of them has anything to do.
func Settle(processes ...*Process) {
	for rounds, busy := 0, true; busy; rounds++ {
		busy = false
		for _, p := range processes {
			p.t.Helper()
			for p.tell() || len(p.Queue.all) > 0 {
				busy = true
				requests := p.Queue.all
				p.Queue.all = nil
				for _, request := range requests {
					result, err := p.reconciler.Reconcile(p.t.Context(), request)
					if err != nil {
						p.t.Fatalf("%v: %v", request, err)
					}
					p.Later[request] = result.RequeueAfter
				}
				rounds++
				if rounds > 1000 {
					p.t.Fatal("the processes do not become idle")
				}
			}
		}
	}
}
