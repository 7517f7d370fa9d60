// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

var (
	start     = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	errKilled = errors.New("the process is killed")
	key       = types.NamespacedName{Namespace: "ns", Name: "web"}
)

// fixture is a hub, the watches of a process, and the process, which may be killed after any write.
type fixture struct {
	*testing.T
	// client is the client of users and agents. Each write becomes an event of the watches.
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	uids   int

	// untold are the pending events of the watches, and cached the works whose events were delivered.
	untold []told
	cached map[string]client.Object

	// effects are the writes of the process, reviews the questions of its SubjectAccessReviews, asked the last of these, and lists the number of
	// its lists.
	effects   []string
	reviews   []string
	asked     authorizationv1.SubjectAccessReviewSpec
	lists     int
	each      func()
	killAfter int
	dead      bool
	// refuse may answer a write in place of the server, and allows returns whether an author has a permission.
	refuse func(effect string) error
	allows func(question string) (bool, error)
	// defaults sets the server's defaults of a work.
	defaults func(*workv1.ManifestWork)

	process *Reconciler
	queue   *requests
	// events are the events about the set.
	events *events.FakeRecorder
}

// told is an event of a watch.
type told struct {
	obj  client.Object
	gone bool
}

// requests is a queue without time. later are the requests that were added with a delay, and the delay.
type requests struct {
	queue
	all   []reconcile.Request
	later map[reconcile.Request]time.Duration
}

func (q *requests) Add(r reconcile.Request) {
	if !slices.Contains(q.all, r) {
		q.all = append(q.all, r)
	}
}

func (q *requests) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

func newFixture(t *testing.T, objs ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(authorizationv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme)
	if err := all.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(start), killAfter: -1, allows: func(string) (bool, error) { return true, nil },
		events: events.NewFakeRecorder(10_000)}
	f.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&clusterv1beta1.PlacementDecision{}, &workv1.ManifestWork{}, &workv1alpha1.ManifestWorkReplicaSet{}).Build(), f.server())
	f.restart()
	f.create(objs...)
	return f
}

// server counts generations as hub-apiserver does, and queues the events of the watches.
func (f *fixture) server() interceptor.Funcs {
	tell := func(ctx context.Context, c client.Client, obj client.Object, err error) error {
		if err != nil {
			return err
		}
		now := obj.DeepCopyObject().(client.Object)
		err = c.Get(ctx, client.ObjectKeyFromObject(obj), now)
		if client.IgnoreNotFound(err) == nil {
			f.untold = append(f.untold, told{now, err != nil})
		}
		return client.IgnoreNotFound(err)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			f.uids++
			obj.SetUID(types.UID(fmt.Sprint("uid-", f.uids)))
			obj.SetGeneration(1)
			if w, ok := obj.(*workv1.ManifestWork); ok && f.defaults != nil {
				f.defaults(w)
			}
			return tell(ctx, c, obj, c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return tell(ctx, c, obj, c.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, obj, patch, opts...)
			if err == nil && patch.Type() == types.JSONPatchType {
				obj.SetGeneration(obj.GetGeneration() + 1)
				if f.defaults != nil {
					f.defaults(obj.(*workv1.ManifestWork))
				}
				err = c.Update(ctx, obj)
			}
			return tell(ctx, c, obj, err)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			last := obj.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), last); err != nil {
				return err
			}
			return tell(ctx, c, last, c.Delete(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return tell(ctx, c, obj, c.SubResource(sub).Patch(ctx, obj, patch, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return tell(ctx, c, obj, c.SubResource(sub).Update(ctx, obj, opts...))
		},
	}
}

// restart replaces the process by a new one, which knows only what the API server has.
func (f *fixture) restart() {
	f.Helper()
	f.dead, f.killAfter, f.untold, f.cached = false, -1, nil, map[string]client.Object{}
	f.queue = &requests{later: map[reconcile.Request]time.Duration{}}
	f.process = newReconciler(interceptor.NewClient(f.client, f.own()), f.events, f.clock)
	for _, list := range []client.ObjectList{
		&workv1alpha1.ManifestWorkReplicaSetList{}, &workv1.ManifestWorkList{}, &workv1alpha1.ManifestWorkReplicaSetRevisionList{},
	} {
		if err := f.client.List(f.Context(), list); err != nil {
			f.Fatal(err)
		}
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			f.untold = append(f.untold, told{obj: obj.DeepCopyObject().(client.Object)})
			return nil
		})
	}
}

// effect does a write of the process. The process dies right after the write number killAfter.
func (f *fixture) effect(verb string, obj client.Object, do func() error) error {
	what := fmt.Sprintf("%s %s", verb, obj.GetNamespace())
	if f.dead {
		return errKilled
	}
	if f.refuse != nil {
		if err := f.refuse(what); err != nil {
			return err
		}
	}
	err := do()
	if err == nil {
		f.effects = append(f.effects, what)
		if f.each != nil {
			f.each()
		}
	}
	f.killAfter--
	if f.killAfter == 0 {
		f.dead = true
		return errKilled
	}
	return err
}

// own records what the process does. It reads works from its cache.
func (f *fixture) own() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w, ok := obj.(*workv1.ManifestWork)
			if !ok {
				return c.Get(ctx, name, obj, opts...)
			}
			w.Namespace, w.Name = name.Namespace, name.Name
			if cached := f.cached[identity(w)]; cached != nil {
				cached.(*workv1.ManifestWork).DeepCopyInto(w)
				return nil
			}
			return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			f.lists++
			if _, ok := list.(*workv1.ManifestWorkList); ok {
				f.Error("all works are listed")
			}
			// The fake client does not support this option.
			opts = slices.DeleteFunc(slices.Clone(opts), func(o client.ListOption) bool { return o == client.UnsafeDisableDeepCopy })
			if revisions, ok := list.(*workv1alpha1.ManifestWorkReplicaSetRevisionList); ok {
				f.lists-- // the revisions of one set
				if err := c.List(ctx, list, opts...); err != nil {
					return err
				}
				revisions.Items = slices.DeleteFunc(revisions.Items, func(r workv1alpha1.ManifestWorkReplicaSetRevision) bool { return f.cached[identity(&r)] == nil })
				for i := range revisions.Items {
					slimRevision(&revisions.Items[i])
				}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, ok := obj.(*authorizationv1.SubjectAccessReview); ok {
				return f.review(review)
			}
			return f.effect("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.effect("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			verb := "mark"
			if patch.Type() == types.JSONPatchType {
				verb = "update"
			}
			return f.effect(verb, obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.effect(sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
}

func (f *fixture) review(review *authorizationv1.SubjectAccessReview) error {
	a := review.Spec.ResourceAttributes
	q := question{verb: a.Verb, resource: a.Resource, subresource: a.Subresource, namespace: a.Namespace, name: a.Name}
	text := review.Spec.User + ": " + q.String()
	f.reviews, f.asked = append(f.reviews, text), review.Spec
	var err error
	review.Status.Allowed, err = f.allows(text)
	return err
}

func identity(obj client.Object) string {
	return fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName())
}

// tell delivers the pending events of the watches.
func (f *fixture) tell() {
	f.Helper()
	all := f.untold
	f.untold = nil
	for _, e := range all {
		obj, err := ForCache(e.obj.DeepCopyObject())
		if err != nil {
			f.Fatal(err)
		}
		e.obj = obj.(client.Object)
		id := identity(e.obj)
		for _, w := range f.process.watches() {
			if fmt.Sprintf("%T", w.kind) != fmt.Sprintf("%T", e.obj) {
				continue
			}
			before := f.cached[id]
			switch f.cached[id] = e.obj; {
			case e.gone:
				delete(f.cached, id)
				w.handler.Delete(f.Context(), event.DeleteEvent{Object: e.obj}, f.queue)
			case before == nil:
				w.handler.Create(f.Context(), event.CreateEvent{Object: e.obj}, f.queue)
			default:
				w.handler.Update(f.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: e.obj}, f.queue)
			}
		}
	}
}

// once handles the queued requests, and records those with a delay.
func (f *fixture) once() {
	f.Helper()
	all := f.queue.all
	f.queue.all = nil
	for _, next := range all {
		result, err := f.process.Reconcile(f.Context(), next)
		switch {
		case f.dead:
			return
		case err != nil:
			f.queue.Add(next)
		case result.RequeueAfter > 0:
			f.queue.later[next] = result.RequeueAfter
		default:
			delete(f.queue.later, next)
		}
	}
}

// settle runs the process until nothing is left to do, and advances the clock for requests with a delay of up to one second. It returns the writes
// to works.
func (f *fixture) settle() []string {
	f.Helper()
	f.effects = nil
	for range 3000 {
		f.tell()
		f.once()
		if f.dead {
			return f.works()
		}
		f.tell()
		if len(f.queue.all) > 0 {
			continue
		}
		soon := false
		for request, wait := range f.queue.later {
			delete(f.queue.later, request)
			if wait <= time.Second {
				f.clock.SetTime(f.clock.Now().Add(wait))
				f.queue.Add(request)
				soon = true
			}
		}
		if !soon {
			return f.works()
		}
	}
	f.Fatalf("does not settle: %q", f.effects[max(0, len(f.effects)-20):])
	return nil
}

// works returns the effects on works: not those on the set and its revisions, which are in the namespace ns.
func (f *fixture) works() []string {
	return slices.DeleteFunc(slices.Clone(f.effects), func(effect string) bool {
		return slices.Contains([]string{"status ns", "mark ns", "create ns", "delete ns"}, effect)
	})
}

// pass advances the clock.
func (f *fixture) pass(d time.Duration) {
	f.clock.SetTime(f.clock.Now().Add(d))
	f.queue.Add(reconcile.Request{NamespacedName: key})
}

// expect calls settle and compares the writes to works.
func (f *fixture) expect(want ...string) {
	f.Helper()
	if got := f.settle(); !slices.Equal(got, want) {
		f.Fatalf("written: %q, want %q", got, want)
	}
}

// change is an update by a user. It increases the generation of a set.
func change[O any, T interface {
	*O
	client.Object
}](f *fixture, name types.NamespacedName, change func(T)) {
	f.Helper()
	obj := T(new(O))
	if err := f.client.Get(f.Context(), name, obj); err != nil {
		f.Fatal(err)
	}
	change(obj)
	obj.SetGeneration(obj.GetGeneration() + 1)
	if err := f.client.Update(f.Context(), obj); err != nil {
		f.Fatal(err)
	}
}
