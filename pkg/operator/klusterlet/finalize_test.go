// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// TestFinalize_AbandonsUnreachableCluster uses a fake clock, so that giving up takes no time.
func TestFinalize_AbandonsUnreachableCluster(t *testing.T) {
	dead := func(source []byte) []byte {
		lines := strings.Split(string(source), "\n")
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "server:") {
				lines[i] = "    server: https://127.0.0.1:1"
			}
		}
		return []byte(strings.Join(lines, "\n"))
	}
	for name, test := range map[string]struct {
		breaks func(w *world, k *operatorv1.Klusterlet)
		says   string
	}{
		"it is gone": {func(w *world, k *operatorv1.Klusterlet) {
			w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": dead(w.source)})
		}, "127.0.0.1:1"},
		"the secret was deleted": {func(w *world, k *operatorv1.Klusterlet) {
			w.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfig}})
		}, "external-managed-kubeconfig does not exist"},
		"the namespace was deleted": {func(w *world, k *operatorv1.Klusterlet) {
			w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.AgentNamespace()}})
			operatortest.Eventually(w.T, "the namespace is gone", func() bool {
				return apierrors.IsNotFound(w.here.Get(w.Context(), client.ObjectKey{Name: k.AgentNamespace()}, &corev1.Namespace{}))
			})
		}, "external-managed-kubeconfig does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.reconciler()
			k := w.applied(r, operatorv1.InstallModeHosted, nil)
			test.breaks(w, k)
			w.delete(k)
			w.clock.SetTime(time.Now()) // unreachable since the deletion at the earliest
			w.until(r, k, "it says what is wrong", func(k *operatorv1.Klusterlet) bool {
				applied := condition(k, operatorv1.ConditionKlusterletApplied)
				return applied.Status == metav1.ConditionFalse && applied.Reason == reasonUnreachable && strings.Contains(applied.Message, test.says)
			})
			since := w.now(k).Annotations[operatorv1.AnnotationEvictionTimestamp]
			if want := w.clock.Now().UTC().Format(time.RFC3339); since != want {
				t.Errorf("it is away since %q, want %q", since, want)
			}
			w.clock.SetTime(w.clock.Now().Add(givenUpAfter - 2*time.Second))
			w.once(r, k)
			if w.now(k) == nil {
				t.Fatal("it was given up too early")
			}
			w.clock.SetTime(w.clock.Now().Add(2 * time.Second))
			w.until(r, k, "it is gone", isGone)
			if left := w.of(w.here, k); len(left) > 0 {
				t.Errorf("on the cluster of the pods is left: %q", left)
			}
			if len(w.of(w.there, k)) == 0 {
				t.Error("the managed cluster was reached: the test shows nothing")
			}
			if told := w.told(); !strings.Contains(told, "Warning "+reasonUnreachable) || !strings.Contains(told, "Warning "+reasonGivenUp) {
				t.Errorf("the events are %s", told)
			}
			// For the tests that follow.
			there := &cluster{client: w.there, owner: ownerOf(k, r.managementUID), mark: markOf(k.Name, k.UID, r.managementUID)}
			if err := there.finalize(t.Context(), r.newPass(k).inventory()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFinalize_RetriesConflictsOnSharedObjects: others may write shared objects all the time. A cluster that returns conflicts responds, so the
// controller does not give up on it.
func TestFinalize_RetriesConflictsOnSharedObjects(t *testing.T) {
	w := newWorld(t)
	busy := true
	var k *operatorv1.Klusterlet
	w.wrap = func(c client.Client) client.Client {
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, i client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if k != nil && busy && o.GetName() == k.ManagedNamespace() {
					return apierrors.NewConflict(corev1.Resource("namespaces"), o.GetName(), errors.New("it has changed"))
				}
				return i.Delete(ctx, o, options...)
			},
		})
	}
	r := w.reconciler()
	k = w.applied(r, operatorv1.InstallModeHosted, nil)
	w.delete(k)
	for range 3 {
		w.until(r, k, "it waits", func(k *operatorv1.Klusterlet) bool {
			applied := condition(k, operatorv1.ConditionKlusterletApplied)
			return applied.Reason == reasonCleaning && strings.Contains(applied.Message, "that write the objects to delete on the managed cluster: Namespace "+k.ManagedNamespace())
		})
		if since := w.now(k).Annotations[operatorv1.AnnotationEvictionTimestamp]; since != "" {
			t.Fatalf("it is away since %s", since)
		}
		w.clock.SetTime(w.clock.Now().Add(givenUpAfter))
		w.once(r, k)
	}
	busy = false
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

func (w *world) told() string {
	var told []string
	for {
		select {
		case e := <-w.events.Events:
			told = append(told, e)
		default:
			return strings.Join(told, "\n")
		}
	}
}

func TestFinalize_CleansUpReturningCluster(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeDetached, nil)
	external := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfig}}
	w.delete(external)
	w.delete(k)
	w.until(r, k, "it is away", func(k *operatorv1.Klusterlet) bool {
		return k.Annotations[operatorv1.AnnotationEvictionTimestamp] != ""
	})
	w.clock.SetTime(w.clock.Now().Add(givenUpAfter - time.Second))
	w.once(r, k)
	w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": w.source})
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// TestFinalize_LastDeletesSharedObjects: definitions and namespaces belong to all their users.
func TestFinalize_LastDeletesSharedObjects(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	shared := func(k *operatorv1.Klusterlet) { k.Spec.Namespace = "open-cluster-management-shared" }
	first := w.applied(r, operatorv1.InstallModeHosted, shared)
	second := w.applied(r, operatorv1.InstallModeHosted, shared)
	has := func() (names []string) {
		for kind, name := range map[string]string{"Namespace": "open-cluster-management-shared",
			"CustomResourceDefinition": "appliedmanifestworks.work.open-cluster-management.io"} {
			o := &unstructured.Unstructured{}
			gvk := plan.Namespaces.GroupVersionKind
			if kind != "Namespace" {
				gvk = plan.Definitions.GroupVersionKind
			}
			o.SetGroupVersionKind(gvk)
			if err := w.there.Get(t.Context(), client.ObjectKey{Name: name}, o); err == nil && o.GetDeletionTimestamp() == nil {
				names = append(names, fmt.Sprint(kind, " ", o.GetLabels()))
			}
		}
		slices.Sort(names)
		return names
	}
	w.delete(first)
	w.until(r, first, "it is gone", isGone)
	w.expectNothing(first)
	if got := has(); len(got) != 2 {
		t.Errorf("the first one left %q", got)
	}
	w.expectAll(second)
	w.delete(second)
	w.until(r, second, "it is gone", isGone)
	if got := has(); len(got) != 0 {
		t.Errorf("the last one left %q", got)
	}
}

// TestFinalize_RetainsPreexistingObjects: a namespace that a user created is not deleted, nor are definitions of others.
func TestFinalize_RetainsPreexistingObjects(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management-users"}}
	if err := w.there.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	k := w.applied(r, operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) { k.Spec.Namespace = namespace.Name })
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
	if err := w.there.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.DeletionTimestamp != nil || len(namespace.Labels) != 1 {
		t.Errorf("the user's namespace is %+v: %v", namespace.ObjectMeta, err)
	}
	if err := w.there.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

// TestFinalize_RetriesSoonAfterErrors: an error is reported and retried at the interval of a wait, however often it occurred.
func TestFinalize_RetriesSoonAfterErrors(t *testing.T) {
	w := newWorld(t)
	broken := true
	w.wrap = func(c client.Client) client.Client {
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, i client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if broken && o.GetObjectKind().GroupVersionKind().Kind == "ServiceAccount" {
					return apierrors.NewInternalError(errors.New("the server is broken"))
				}
				return i.Delete(ctx, o, options...)
			},
		})
	}
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeDefault, nil)
	w.delete(k)
	w.until(r, k, "it says what is wrong", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "the server is broken")
	})
	for age, want := range map[time.Duration]time.Duration{0: finalizeSoon, time.Hour: finalizeInterval} {
		w.clock.SetTime(w.now(k).DeletionTimestamp.Add(age))
		if result, err := r.Reconcile(t.Context(), requestOf(k.Name)); err != nil || result.RequeueAfter != want {
			t.Errorf("%s after the deletion: %+v, %v, want a look after %s", age, result, err, want)
		}
	}
	broken = false
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// works creates what a work agent leaves behind.
func (w *world) works(c client.Client, k *operatorv1.Klusterlet) *corev1.ConfigMap {
	w.Helper()
	return operatortest.Work(w.T, c, deploy.Klusterlet{Name: k.Name}.AgentID(), k.Name)
}

// TestFinalize_RetainsNamespaceOfHub: in mode Hosted a ClusterManager and a Klusterlet with the same name would share a namespace. It remains the hub's.
func TestFinalize_RetainsNamespaceOfHub(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Name, Labels: map[string]string{
			deploy.LabelManagedBy: deploy.ManagedByOperator, operatorv1.LabelClusterManager: k.Name}}}
		if err := w.here.Create(w.Context(), namespace); err != nil {
			w.Fatal(err)
		}
	})
	w.until(r, k, "the namespace is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletAvailable).Message, "belongs to a hub")
	})
	namespace := &corev1.Namespace{}
	check := func(when string) {
		t.Helper()
		if err := w.here.Get(w.Context(), client.ObjectKey{Name: k.Name}, namespace); err != nil || namespace.DeletionTimestamp != nil || ours(asObject(t, namespace)) {
			t.Errorf("%s the namespace is %+v: %v", when, namespace.ObjectMeta, err)
		}
	}
	check("refused")
	// Also a namespace that the Klusterlet used before it was rejected.
	namespace.Labels[LabelShared], namespace.Labels[markOf(k.Name, k.UID, r.managementUID).key] = "", "used"
	if err := w.here.Update(w.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	check("left")
	if marks(asObject(t, namespace)) > 0 {
		t.Errorf("its mark is still there: %v", namespace.Labels)
	}
}

func asObject(t *testing.T, namespace *corev1.Namespace) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func TestFinalize_WithWorks(t *testing.T) {
	for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeHosted, operatorv1.InstallModeDefault} {
		for _, fate := range []string{"", FateDelete} {
			t.Run(fmt.Sprintf("%s, %q", mode, fate), func(t *testing.T) {
				w := newWorld(t)
				r := w.reconciler()
				k := w.applied(r, mode, func(k *operatorv1.Klusterlet) {
					if fate != "" {
						k.Annotations = map[string]string{AnnotationWorks: fate}
					}
				})
				c := w.there
				if !k.IsDetached() {
					c = w.here
				}
				object := w.works(c, k)
				w.delete(k)
				w.until(r, k, "it is gone", isGone)
				w.expectNothing(k)
				err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
				if fate == FateDelete && !apierrors.IsNotFound(err) || fate == "" && (err != nil || len(object.OwnerReferences) > 0) {
					t.Errorf("the object is %+v: %v", object.ObjectMeta, err)
				}
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(plan.Records.GroupVersion().WithKind("AppliedManifestWorkList"))
				if err := client.IgnoreNotFound(c.List(t.Context(), list)); err != nil || len(list.Items) > 0 {
					t.Errorf("%d records are left: %v", len(list.Items), err)
				}
			})
		}
	}
}

// TestFinalize_MisspelledAnnotationDeletesNothing: a misspelled fate deletes nothing.
func TestFinalize_MisspelledAnnotationDeletesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) { k.Annotations = map[string]string{AnnotationWorks: "delete!"} })
	object := w.works(w.there, k)
	w.delete(k)
	w.until(r, k, "it says so", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, AnnotationWorks+" must be Keep or Delete")
	})
	if err := w.there.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || len(object.OwnerReferences) != 1 {
		t.Errorf("the object is %+v: %v", object.ObjectMeta, err)
	}
	now := w.now(k)
	now.Annotations[AnnotationWorks] = FateDelete
	if err := w.here.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// TestReconcile_AdoptsNothingOfFormerKlusterlet: of two Klusterlets with the same name, the second of which was created after the first was deleted by
// force, only the second has rights.
func TestReconcile_AdoptsNothingOfFormerKlusterlet(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeHosted, nil)
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: k.ManagedNamespace(), Name: k.WorkServiceAccount()}
	if err := w.there.Get(t.Context(), key, account); err != nil {
		t.Fatal(err)
	}
	before := account.UID
	k.Finalizers = nil
	if err := w.here.Update(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	again := w.applied(r, operatorv1.InstallModeHosted, func(again *operatorv1.Klusterlet) { again.Name, again.Spec = k.Name, k.Spec })
	if err := w.there.Get(t.Context(), key, account); err != nil || account.UID == before {
		t.Errorf("tokens of the former one are still good: %v", err)
	}
	w.expectAll(again)
	w.delete(again)
	w.until(r, again, "it is gone", isGone)
	w.expectNothing(again)
}
