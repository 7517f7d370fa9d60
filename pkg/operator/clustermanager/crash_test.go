// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
)

// life is how many more writes a process makes before it is killed. Then it does nothing more, on any cluster.
type life struct{ writes atomic.Int32 }

var errKilled = errors.New("the process was killed")

func (l *life) write() error {
	if l.writes.Add(-1) < 0 {
		return errKilled
	}
	return nil
}

func (l *life) dead() bool { return l.writes.Load() < 0 }

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
			if err := l.write(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := l.write(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := l.write(); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := l.write(); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := l.write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := l.write(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
}

// untilDone starts one process after the other, each of which is killed after so many writes, until one has nothing to do that
// it does not survive. It returns how many there were.
func (w *world) untilDone(cm string, writes int32) (starts int) {
	w.t.Helper()
	behind, err := client.NewWithWatch(w.management.AdminConfig(), client.Options{Scheme: testScheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	for starts = 1; starts < 500; starts++ {
		l := &life{}
		l.writes.Store(writes)
		c := l.wrap(behind)
		r := &reconciler{Options: Options{Clock: w.clock}, client: c, live: c, later: func(string) {}, here: func() {}}
		r.keeper = &kubeconfig.Keeper{Client: c, Clock: w.clock}
		r.hubs.wrap = l.wrap
		_, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: cm}})
		r.hubs.closeAll()
		if !l.dead() && err == nil {
			return starts
		}
		if !l.dead() {
			w.t.Logf("start %d: %v", starts, err)
		}
	}
	w.t.Fatalf("not done after %d starts", starts)
	return starts
}

// Killed after whatever write, the next start goes on: a hub is made, and taken away, with no process living longer than five writes.
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
