// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// life is the number of writes after which a process is killed. A killed process does nothing on any cluster.
type life struct {
	left atomic.Int32
	lock sync.Mutex
	// written lists all writes.
	written []string
}

func newLife(writes int32) *life {
	l := &life{}
	l.left.Store(writes)
	return l
}

// long is a life that does not end.
const long = math.MaxInt32

var errKilled = errors.New("the process was killed")

func (l *life) write(verb string, o any, do func() error) error {
	if l.left.Add(-1) < 0 {
		return errKilled
	}
	what := fmt.Sprintf("%s %T", verb, o)
	if o, ok := o.(client.Object); ok {
		what = fmt.Sprintf("%s %T %s/%s", verb, o, o.GetNamespace(), o.GetName())
	}
	l.lock.Lock()
	l.written = append(l.written, what)
	l.lock.Unlock()
	return do()
}

// since returns the writes after the first n.
func (l *life) since(n int) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Clone(l.written[n:])
}

func (l *life) dead() bool { return l.left.Load() < 0 }

func (l *life) read() error {
	if l.dead() {
		return errKilled
	}
	return nil
}

func (l *life) wrap(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(l.read(), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(l.read(), c.List(ctx, list, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return l.write("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return l.write("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return l.write("patch", o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return l.write("apply", o, func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return l.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return l.write("patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
	})
}

// process reconciles a ClusterManager only when the test calls it. It has no watches.
type process struct {
	*reconciler
	*life
	w     *world
	tells *events.FakeRecorder
}

func (w *world) process(writes int32) *process {
	w.t.Helper()
	behind, err := client.NewWithWatch(w.management.AdminConfig(), client.Options{Scheme: testScheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{life: newLife(writes), w: w, tells: events.NewFakeRecorder(1000)}
	c := p.wrap(behind)
	p.reconciler = &reconciler{Options: Options{Clock: w.clock}, client: c, live: c, recorder: p.tells, here: func() {},
		enqueue: func(string) {}, later: func(string) {}}
	p.minter = &mint.Minter{Client: c, Clock: w.clock}
	p.hubs.wrap = p.wrap
	return p
}

// look reconciles once.
func (p *process) look(cm string) (reconcile.Result, error) {
	return p.Reconcile(p.w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: cm}})
}

// until reconciles until complaint returns an empty string. The argument of complaint is nil if the ClusterManager is gone.
func (p *process) until(name, what string, complaint func(*operatorv1.ClusterManager) string) {
	p.w.t.Helper()
	eventually(p.w.t, what, func() string {
		_, err := p.look(name)
		if text := complaint(p.w.read(name)); text != "" {
			return fmt.Sprintf("%s (%v)", text, err)
		}
		return ""
	})
}

// untilDone starts processes one after the other, each of which is killed after the given number of writes, until one survives because nothing is
// left to do. It returns the number of processes.
func (w *world) untilDone(cm string, writes int32) (starts int) {
	w.t.Helper()
	for starts = 1; starts < 1000; starts++ {
		p := w.process(writes)
		_, err := p.look(cm)
		p.hubs.CloseAll()
		if !p.dead() && err == nil {
			return starts
		}
		if !p.dead() {
			w.t.Logf("start %d: %v", starts, err)
		}
	}
	w.t.Fatalf("not done after %d starts", starts)
	return starts
}

// checkKilled verifies that the next process continues where a killed one stopped: a hub is created and deleted while no process lives longer than
// five writes, so that each fifth write is the last of a process. With one write per process the test takes more than a minute.
func checkKilled(t *testing.T, w *world) {
	t.Helper()
	const writes = 5
	cm := detached("killed")
	w.create(cm)
	w.untilDone("killed", writes)
	w.give(cm, w.hub)
	if starts := w.untilDone("killed", writes); starts < 10 {
		t.Errorf("a hub was made by %d processes", starts)
	}
	w.condition("killed", operatorv1.ConditionClusterManagerApplied, "True", "")
	eventually(t, "there is a server", func() string {
		w.playKubelet(cm.ServerNamespace())
		d := &appsv1.Deployment{}
		if err := w.management.client.Get(t.Context(), client.ObjectKey{Namespace: cm.ServerNamespace(), Name: deploy.APIServer}, d); err != nil {
			return err.Error()
		}
		if d.Status.AvailableReplicas == 0 {
			return fmt.Sprintf("%+v", d.Status)
		}
		return ""
	})
	w.untilDone("killed", writes)
	if on := made(t, w.hub, "killed"); on["APIService /v1.work.open-cluster-management.io"] == "" {
		t.Error("with the server the APIServices have not come")
	}
	if err := w.management.client.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func() string {
		w.untilDone("killed", writes)
		if cm := w.read("killed"); cm != nil {
			return fmt.Sprintf("%+v", cm.Status.Conditions)
		}
		return ""
	})
	for where, c := range map[string]*cluster{"the hub": w.hub, "the management cluster": w.management} {
		eventually(t, where+" has nothing of it", func() string {
			if left := made(t, c, "killed"); len(left) > 0 {
				return fmt.Sprint(left)
			}
			return ""
		})
	}
}
