// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// half creates a ClusterManager with a process that ends after the given number of writes, counted after the process waited for the Secret. It starts
// when no namespace of a previous ClusterManager with that name is terminating: a process reconciles once, and could create nothing there.
func (w *world) half(name string, writes int32) (*operatorv1.ClusterManager, *process) {
	w.t.Helper()
	for where, c := range map[string]*cluster{"the hub": w.hub, "the management cluster": w.management} {
		eventually(w.t, "no namespace of "+name+" is going on "+where, func() string {
			all := &corev1.NamespaceList{}
			if err := c.client.List(w.t.Context(), all, client.MatchingLabels{operatorv1.LabelClusterManager: name}); err != nil {
				return err.Error()
			}
			for i := range all.Items {
				if n := &all.Items[i]; n.DeletionTimestamp != nil {
					return fmt.Sprintf("%s %+v", n.Name, n.Status)
				}
			}
			return ""
		})
	}
	cm := detached(name)
	w.create(cm)
	w.untilDone(name, long)
	w.give(cm, w.hub)
	p := w.process(writes)
	_, err := p.look(name)
	if !p.dead() && err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.hubs.CloseAll)
	return cm, p
}

func (w *world) deletes(o client.Object) {
	w.t.Helper()
	if err := w.management.client.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// leaves reconciles until a ClusterManager is gone, and verifies that nothing of it is left.
func (w *world) leaves(p *process, name string) {
	w.t.Helper()
	p.until(name, name+" is gone", func(cm *operatorv1.ClusterManager) string {
		if cm != nil {
			return fmt.Sprintf("%+v", cm.Status.Conditions)
		}
		return ""
	})
	for where, c := range map[string]*cluster{"the hub": w.hub, "the management cluster": w.management} {
		eventually(w.t, where+" has nothing of "+name, func() string {
			if left := made(w.t, c, name); len(left) > 0 { // the deletion of namespaces takes time
				return fmt.Sprint(slices.Sorted(maps.Keys(left)))
			}
			return ""
		})
	}
}

// checkRefusals lets one kind of request fail on a cluster, while all others succeed. The controller gives up on a hub because of it: a hub that
// responds otherwise must not block the ClusterManager for good. It never gives up on the management cluster.
func checkRefusals(t *testing.T, w *world) {
	t.Helper()
	const name = "refused"
	refuse := func(c client.WithWatch, kind string) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if o.GetObjectKind().GroupVersionKind().Kind == kind {
					return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, o.GetName(), fmt.Errorf("not this one"))
				}
				return c.Delete(ctx, o, opts...)
			},
		})
	}
	for what, test := range map[string]struct {
		wrap func(client.WithWatch) client.Client
		says string
	}{
		"a right is missing": {func(c client.WithWatch) client.Client { return refuse(c, "FlowSchema") }, "not this one"},
		"it is slow": {func(c client.WithWatch) client.Client {
			return interceptor.NewClient(c, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if list.GetObjectKind().GroupVersionKind().Kind == "FlowSchemaList" {
						<-ctx.Done() // each response is late, but comes
						return ctx.Err()
					}
					return c.List(ctx, list, opts...)
				},
			})
		}, "deadline exceeded"},
	} {
		t.Run(what, func(t *testing.T) {
			// The second ClusterManager takes over what the first one left there.
			cm, _ := w.half(name, long)
			w.deletes(cm)
			p := w.process(long)
			defer p.hubs.CloseAll()
			p.hubs.wrap, p.hubTime = test.wrap, 2*time.Second
			p.until(name, "it says that it cannot be cleaned", func(cm *operatorv1.ClusterManager) string {
				if said := fmt.Sprintf("%+v", cm.Status.Conditions); !strings.Contains(said, reasonUnreachable) || !strings.Contains(said, test.says) {
					return said
				}
				return ""
			})
			if cm := w.read(name); cm.Annotations[operatorv1.AnnotationEvictionTimestamp] == "" {
				t.Error("it is not known since when")
			}
			w.clock.step(giveUpAfter + time.Minute)
			p.until(name, "it is gone", func(cm *operatorv1.ClusterManager) string {
				if cm != nil {
					return fmt.Sprintf("%+v", cm.Status.Conditions)
				}
				return ""
			})
			if left := made(t, w.hub, name); left["FlowSchema /clusterhub-agents"] == "" {
				t.Errorf("the hub has let go of it: the test shows nothing: %v", left)
			}
			told := ""
			for len(p.tells.Events) > 0 {
				told += <-p.tells.Events + "\n"
			}
			for _, want := range []string{"Warning " + reasonUnreachable, "Warning " + reasonGivenUp, operatorv1.LabelClusterManager + "=" + name, test.says} {
				if !strings.Contains(told, want) {
					t.Errorf("no event says %q:\n%s", want, told)
				}
			}
			eventually(t, "the management cluster has nothing of it", func() string {
				return strings.Join(slices.Sorted(maps.Keys(made(t, w.management, name))), ", ")
			})
		})
	}
	t.Run("it is the management cluster", func(t *testing.T) {
		cm, _ := w.half(name, long)
		w.deletes(cm)
		p := w.process(long)
		defer p.hubs.CloseAll()
		before := p.client
		p.client = refuse(before.(client.WithWatch), "PodDisruptionBudget")
		for range 2 {
			p.until(name, "it says what is refused", func(cm *operatorv1.ClusterManager) string {
				if cm == nil {
					t.Fatal("it is gone")
				}
				said := fmt.Sprintf("%+v", cm.Status.Conditions)
				if !strings.Contains(said, "not this one") || strings.Contains(said, reasonUnreachable) || cm.Annotations[operatorv1.AnnotationEvictionTimestamp] != "" {
					return said + fmt.Sprint(cm.Annotations)
				}
				return ""
			})
			w.clock.step(2 * giveUpAfter)
		}
		p.client = before
		w.leaves(p, name)
	})
}
