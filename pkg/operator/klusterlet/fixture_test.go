// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/test/await"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(operatortest.Shared.Main(m))
}

// world has a cluster with Klusterlets, and a managed cluster.
type world struct {
	*testing.T
	here, there client.Client
	source      []byte
	events      *events.FakeRecorder
	clock       *testclock.FakePassiveClock
	// wrap wraps the clients of each Reconciler.
	wrap func(client.Client) client.Client
	// end stops the most recent Reconciler.
	end  context.CancelFunc
	last error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	management, managed := operatortest.Shared.Config(t, "management"), operatortest.Shared.Config(t, "managed")
	operatortest.Install(t, management)
	w := &world{T: t, events: events.NewFakeRecorder(10_000), clock: testclock.NewFakePassiveClock(time.Now())}
	var err error
	w.here, err = client.New(management, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w.there, err = client.New(managed, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.source, err = operatortest.Kubeconfig(managed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// reconciler returns a Reconciler as of a new process.
func (w *world) reconciler() *Reconciler {
	w.Helper()
	live, err := client.NewWithWatch(operatortest.Shared.Config(w.T, "management"), client.Options{Scheme: scheme(), Mapper: plan.Mapper()})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel)
	w.end = cancel
	wrap := w.wrap
	if wrap == nil {
		wrap = func(c client.Client) client.Client { return c }
	}
	system := &corev1.Namespace{}
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		w.Fatal(err)
	}
	wrapped := wrap(live)
	r := Options{Clock: w.clock}.reconciler(ctx, operatortest.Shared.Config(w.T, "management"), wrapped, wrapped, string(system.UID))
	r.recorder, r.connections.wrap = w.events, wrap
	return r
}

// klusterlet creates a Klusterlet with a unique name.
func (w *world) klusterlet(mode operatorv1.InstallMode, change func(*operatorv1.Klusterlet)) *operatorv1.Klusterlet {
	w.Helper()
	k := &operatorv1.Klusterlet{}
	k.Name = "k" + rand.String(6)
	k.Spec.DeployOption.Mode = mode
	k.Spec.Namespace = "open-cluster-management-" + k.Name
	if change != nil {
		change(k)
	}
	if err := w.here.Create(w.Context(), k); err != nil {
		w.Fatal(err)
	}
	operatortest.Gone(w.T, w.here, k)
	return k
}

// secret creates one of the secrets of a Klusterlet.
func (w *world) secret(k *operatorv1.Klusterlet, name string, data map[string][]byte) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: name}, Data: data}
	err := w.here.Create(w.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = w.here.Update(w.Context(), secret)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// given creates all that a Klusterlet needs.
func (w *world) given(r *Reconciler, k *operatorv1.Klusterlet) {
	w.Helper()
	w.until(r, k, "the namespace is there", func(*operatorv1.Klusterlet) bool {
		return w.here.Get(w.Context(), client.ObjectKey{Name: k.AgentNamespace()}, &corev1.Namespace{}) == nil
	})
	if k.IsDetached() {
		w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": w.source})
	}
	w.secret(k, operatorv1.BootstrapHubKubeconfig, map[string][]byte{"kubeconfig": operatortest.Bootstrap})
}

// once reconciles a Klusterlet once.
func (w *world) once(r *Reconciler, k *operatorv1.Klusterlet) {
	_, w.last = r.Reconcile(w.Context(), requestOf(k.Name))
}

// until reconciles a Klusterlet until the condition holds. Its argument is nil if the Klusterlet is gone.
func (w *world) until(r *Reconciler, k *operatorv1.Klusterlet, what string, holds func(*operatorv1.Klusterlet) bool) {
	w.Helper()
	var now *operatorv1.Klusterlet
	if await.Until(w.Context(), await.Limit, func(context.Context) (bool, error) {
		now = w.now(k)
		if holds(now) {
			return true, nil
		}
		w.once(r, k)
		return false, nil
	}) != nil {
		w.Fatalf("it never holds that %s: %v; %+v", what, w.last, now)
	}
}

// now returns the current Klusterlet, or nil.
func (w *world) now(k *operatorv1.Klusterlet) *operatorv1.Klusterlet {
	w.Helper()
	now := &operatorv1.Klusterlet{}
	err := w.here.Get(w.Context(), client.ObjectKeyFromObject(k), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return now
}

func condition(k *operatorv1.Klusterlet, conditionType string) metav1.Condition {
	if k != nil {
		if c := meta.FindStatusCondition(k.Status.Conditions, conditionType); c != nil {
			return *c
		}
	}
	return metav1.Condition{}
}

func isApplied(k *operatorv1.Klusterlet) bool {
	return condition(k, operatorv1.ConditionKlusterletApplied).Status == metav1.ConditionTrue
}

func isGone(k *operatorv1.Klusterlet) bool { return k == nil }

// applied creates a Klusterlet and waits until all its objects exist.
func (w *world) applied(r *Reconciler, mode operatorv1.InstallMode, change func(*operatorv1.Klusterlet)) *operatorv1.Klusterlet {
	w.Helper()
	k := w.klusterlet(mode, change)
	w.given(r, k)
	w.until(r, k, "it is applied", isApplied)
	return w.now(k)
}

// of returns the objects of a Klusterlet on a cluster, as "Kind namespace/name", and the shared objects that it uses.
func (w *world) of(c client.Client, k *operatorv1.Klusterlet) (all []string) {
	w.Helper()
	for _, kinds := range [][]apply.Mapping{plan.Owned, plan.Shared, {plan.Secrets}} {
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := c.List(w.Context(), list); err != nil {
				w.Fatal(err)
			}
			for _, o := range list.Items {
				mine := o.GetLabels()[operatorv1.LabelKlusterlet] == k.Name
				for key := range o.GetLabels() {
					name, ok := nameOf(key)
					mine = mine || ok && name == k.Name
				}
				if mine && o.GetDeletionTimestamp() == nil {
					all = append(all, strings.ReplaceAll(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), " /", " "))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func (w *world) delete(o client.Object) {
	w.Helper()
	if err := client.IgnoreNotFound(w.here.Delete(w.Context(), o)); err != nil {
		w.Fatal(err)
	}
}

// writes counts the writes of a Reconciler to either cluster. The process fails before one of them.
type writes struct {
	n       int
	crashAt int
	crashed bool
	names   []string
}

var errCrashed = errors.New("crashed")

func (c *writes) around(what string, do func() error) error {
	if c.crashed {
		return errCrashed
	}
	c.n++
	c.names = append(c.names, what)
	if c.n != c.crashAt {
		return do()
	}
	c.crashed = true
	return errCrashed
}

func (c *writes) wrap(inner client.Client) client.Client {
	name := func(verb string, o client.Object) string {
		return fmt.Sprintf("%s %T %s/%s", verb, o, o.GetNamespace(), o.GetName())
	}
	return interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, i client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.around(name("create", o), func() error { return i.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, i client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.around(name("update", o), func() error { return i.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, i client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.around(name("patch", o), func() error { return i.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, i client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.around(name("delete", o), func() error { return i.Delete(ctx, o, opts...) })
		},
		Apply: func(ctx context.Context, i client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return c.around("apply", func() error { return i.Apply(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, i client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.around(name("patch "+sub+" of", o), func() error { return i.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}
