// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
)

// oneSecond sets the same creation time for all Klusterlets.
func oneSecond(c client.Client) client.Client {
	when := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, i client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := i.Get(ctx, key, o, options...)
			o.SetCreationTimestamp(when)
			return err
		},
		List: func(ctx context.Context, i client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := i.List(ctx, list, options...)
			if all, ok := list.(*operatorv1.KlusterletList); ok {
				for n := range all.Items {
					all.Items[n].CreationTimestamp = when
				}
			}
			return err
		},
	})
}

// TestAttack_ConcurrentKlusterletsShareNoNamespace: two Klusterlets are created in the same second, each before the other is observed. The pods of one would
// have the identity of the other, and continue to run after it is rejected.
func TestAttack_ConcurrentKlusterletsShareNoNamespace(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	r.klusterlets = oneSecond(r.client)
	var told sync.Mutex
	var woken []string
	r.observations.enqueue = func(name string) {
		told.Lock()
		defer told.Unlock()
		woken = append(woken, name)
	}
	second := w.applied(r, operatorv1.InstallModeSingleton, func(k *operatorv1.Klusterlet) { k.Name = "z" + k.Name })
	first := w.applied(r, operatorv1.InstallModeSingleton, func(k *operatorv1.Klusterlet) {
		k.Name, k.Spec.Namespace = strings.TrimPrefix(second.Name, "z"), second.Spec.Namespace
	})
	told.Lock()
	if !slices.Contains(woken, second.Name) {
		t.Errorf("the other one is not looked at: %q", woken)
	}
	told.Unlock()
	w.until(r, second, "it is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "belongs to the agent of Klusterlet "+first.Name)
	})
	pods := func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(strings.Join(w.of(w.here, k), " "), plan.Deployments.Kind)
	}
	if pods(second) || !pods(first) {
		t.Errorf("there are pods of the one that is refused: %t, and of the other: %t", pods(second), pods(first))
	}
	// A cached Klusterlet that does not exist any more takes no namespace.
	stale := first.DeepCopy()
	stale.UID = "former"
	if is, err := r.exists(t.Context(), stale); is || err != nil {
		t.Errorf("one of another UID is there: %t, %v", is, err)
	}
	for _, k := range []*operatorv1.Klusterlet{second, first} {
		w.delete(k)
		w.until(r, k, "it is gone", isGone)
		w.expectNothing(k)
	}
}

// TestAttack_NamespaceOfAgentIsNotLabeled: kubectl hub join runs between the read of a namespace and the write of the label. With the
// label, the namespace would count as one of the Klusterlet. Where its pods do not run, it has no secrets.
func TestAttack_NamespaceOfAgentIsNotLabeled(t *testing.T) {
	for name, ofPods := range map[string]bool{"of pods": true, "on a managed cluster": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n" + rand.String(6)}}
			if err := w.here.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			applies := 0
			c := &cluster{mark: markOf("k", "u", "m"), client: interceptor.NewClient(w.reconciler().client.(client.WithWatch), interceptor.Funcs{
				Apply: func(ctx context.Context, i client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
					applies++
					if applies == 1 {
						namespace.Labels = map[string]string{deploy.LabelManagedBy: deploy.ManagedBy, deploy.AgentLabel: deploy.AgentName}
						if err := w.here.Update(ctx, namespace); err != nil {
							t.Error(err)
						}
					}
					return i.Apply(ctx, o, options...)
				},
			})}
			if ofPods {
				c.pods = namespace.Name
			}
			want := &unstructured.Unstructured{}
			want.SetGroupVersionKind(plan.Namespaces.GroupVersionKind)
			want.SetName(namespace.Name)
			err := c.share(t.Context(), want)
			var rejected *rejection
			if is := errors.As(err, &rejected); is != ofPods || !is && err != nil {
				t.Errorf("the error is %v", err)
			}
			if err := w.here.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil || (marks(asObject(t, namespace)) > 0) == ofPods {
				t.Errorf("the namespace is %+v: %v", namespace.ObjectMeta, err)
			}
			w.delete(namespace)
		})
	}
}

// TestReconcile_YieldsToCommandLineAgent: an agent of the command line that is created later gets the namespace, and the pods of the Klusterlet
// are deleted.
func TestReconcile_YieldsToCommandLineAgent(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) {
		if err := w.here.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Name}}); err != nil {
			w.Fatal(err)
		}
	})
	w.given(r, k)
	w.until(r, k, "it is applied", isApplied)
	namespace := &corev1.Namespace{}
	if err := w.here.Get(t.Context(), client.ObjectKey{Name: k.AgentNamespace()}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels[deploy.LabelManagedBy], namespace.Labels[deploy.AgentLabel] = deploy.ManagedBy, deploy.AgentName
	if err := w.here.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.until(r, k, "it is refused, and has no pods", func(now *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(now, operatorv1.ConditionKlusterletApplied).Message, "that kubectl hub join has installed") &&
			!strings.Contains(strings.Join(w.of(w.here, k), " "), plan.Deployments.Kind)
	})
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
	if err := w.here.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("the namespace of the agent has gone with the Klusterlet: %v", err)
	}
	w.delete(namespace)
}
