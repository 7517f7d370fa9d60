// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

var (
	start     = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	errKilled = errors.New("the process is killed")
	key       = types.NamespacedName{Namespace: "ns", Name: "p"}
)

// fixture is a hub, the watches of a process, and the process, which may be killed after any write.
type fixture struct {
	*testing.T
	// client is the client of users. Both users and the process use server, which queues an event of the watches for every write.
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	uids   int

	// untold are the pending events of the watches, and cached the objects whose events were delivered.
	untold []told
	cached map[string]client.Object

	// effects are the writes of the process. each is called after each.
	effects   []string
	each      func()
	killAfter int
	dead      bool
	// refuse may answer a write in place of the server.
	refuse func(effect string) error

	process *Reconciler
	queue   *requests
}

// told is an event of a watch.
type told struct {
	obj  client.Object
	gone bool
}

// requests is a queue without time.
type requests struct {
	queue
	all []reconcile.Request
}

func (q *requests) Add(r reconcile.Request) {
	if !slices.Contains(q.all, r) {
		q.all = append(q.all, r)
	}
}

func (q *requests) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newFixture returns a fixture with the set s1, bound in ns, and these objects.
func newFixture(t *testing.T, objs ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(start), killAfter: -1}
	f.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).Build(), f.server())
	f.restart()
	f.create(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s1"}}, binding("s1"))
	f.create(objs...)
	return f
}

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
			return tell(ctx, c, obj, c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return tell(ctx, c, obj, c.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return tell(ctx, c, obj, c.Patch(ctx, obj, patch, opts...))
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
	}
}

// restart starts a new process, which knows only what the API server has.
func (f *fixture) restart() {
	f.Helper()
	f.dead, f.killAfter, f.untold, f.cached = false, -1, nil, map[string]client.Object{}
	f.events, f.queue = events.NewFakeRecorder(10_000), &requests{}
	f.process = newReconciler(interceptor.NewClient(f.client, f.writes()), f.events, f.clock)
	f.process.queue = f.queue
	for _, list := range []client.ObjectList{&clusterv1beta1.PlacementList{}, &clusterv1beta1.PlacementDecisionList{},
		&clusterv1beta2.ManagedClusterSetList{}, &clusterv1beta2.ManagedClusterSetBindingList{}, &clusterv1.ManagedClusterList{},
		&clusterv1alpha1.AddOnPlacementScoreList{}} {
		if err := f.client.List(f.Context(), list); err != nil {
			f.Fatal(err)
		}
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			f.untold = append(f.untold, told{obj: obj.DeepCopyObject().(client.Object)})
			return nil
		})
	}
}

// effect does a write of the process. The process dies right after its last write.
func (f *fixture) effect(verb string, obj client.Object, do func() error) error {
	what := fmt.Sprintf("%s %s", verb, obj.GetName())
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

// writes records the writes of the process, which reads from its cache.
func (f *fixture) writes() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			obj.SetName(name.Name)
			obj.SetNamespace(name.Namespace)
			switch cached, into := f.cached[identity(obj)], obj; into := into.(type) {
			case *clusterv1beta1.PlacementDecision:
				if cached != nil {
					cached.(*clusterv1beta1.PlacementDecision).DeepCopyInto(into)
					return nil
				}
			case *clusterv1beta1.Placement:
				if cached != nil {
					cached.(*clusterv1beta1.Placement).DeepCopyInto(into)
					return nil
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.effect("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.effect("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return f.effect("labels of", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.effect(sub+" of", obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
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
		id := identity(e.obj)
		for _, w := range f.process.scheduler.watches() {
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

// work handles requests until none are left, without events of the watches. It returns the delays of those that failed.
func (f *fixture) work() (delays []time.Duration) {
	f.Helper()
	for range 1000 {
		if len(f.queue.all) == 0 || f.dead {
			return delays
		}
		next := f.queue.all[0]
		f.queue.all = f.queue.all[1:]
		result, err := f.process.Reconcile(f.Context(), next)
		if err != nil && !f.dead {
			f.queue.Add(next)
		}
		if next != everything && result.RequeueAfter > 0 {
			delays = append(delays, result.RequeueAfter)
			f.queue.Add(next)
		}
	}
	f.Fatalf("does not settle: %v", f.effects)
	return nil
}

// settle runs the process until nothing is left to do, and returns its writes.
func (f *fixture) settle() []string {
	f.Helper()
	f.effects = nil
	for f.tell(); len(f.queue.all) > 0 && !f.dead; f.tell() {
		f.work()
	}
	return f.effects
}

// expect calls settle and compares the writes.
func (f *fixture) expect(want ...string) {
	f.Helper()
	if got := f.settle(); !slices.Equal(got, want) {
		f.Fatalf("written: %q, want %q", got, want)
	}
}

func (f *fixture) create(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		if err := f.client.Create(f.Context(), obj.DeepCopyObject().(client.Object)); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) delete(obj client.Object) {
	f.Helper()
	if err := f.client.Delete(f.Context(), obj); err != nil {
		f.Fatal(err)
	}
}

// change is an update by a user.
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
	if err := f.client.Update(f.Context(), obj); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) label(cluster string, labels ...string) {
	f.Helper()
	change(f, types.NamespacedName{Name: cluster}, func(c *clusterv1.ManagedCluster) { c.Labels = managed("", labels...).Labels })
}
