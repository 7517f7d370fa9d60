// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// TestDetached_DeletesDespiteHubState: several ClusterManagers are created and deleted on one management cluster. The status reports what
// cannot be done, and each can be deleted.
func TestDetached_DeletesDespiteHubState(t *testing.T) {
	w := newWorld(t)
	remove := func(name string) {
		t.Helper()
		if err := w.management.client.Delete(t.Context(), &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("nothing was applied yet", func(t *testing.T) {
		w.create(detached("early"))
		w.condition("early", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		remove("early")
		w.gone("early")
	})
	t.Run("the hub is the management cluster", func(t *testing.T) {
		cm := detached("self")
		w.create(cm)
		w.condition("self", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		w.give(cm, w.management)
		w.condition("self", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "leads to the management cluster itself")
		remove("self")
		w.gone("self")
	})
	t.Run("nothing was applied, for want of rights", func(t *testing.T) {
		never := detached("never")
		never.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
		w.create(never)
		w.condition("never", operatorv1.ConditionClusterManagerApplied, metav1.ConditionFalse, "cannot list resource \"apiservices\"")
		remove("never")
		w.gone("never")
	})
	t.Run("the hub is the cluster itself, as it was asked for", func(t *testing.T) {
		own := detached("own")
		own.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
		w.create(own)
		w.condition("own", operatorv1.ConditionClusterManagerApplied, metav1.ConditionFalse, "bind the ClusterRole cluster-admin")
		w.condition("own", operatorv1.ConditionClusterManagerApplied, metav1.ConditionFalse, "cannot list resource \"apiservices\"")
		if on := made(t, w.management, "own"); len(on) > 0 {
			t.Errorf("without rights it has made %v", on)
		}
		admin := binding("cluster-admin")
		w.create(admin)
		defer func() {
			if err := w.management.client.Delete(t.Context(), admin); err != nil {
				t.Error(err)
			}
		}()
		w.condition("own", operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
		w.condition("own", operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse, "clusterhub-system/hub-apiserver has no pod that is ready")
		remove("own")
		w.gone("own")
		eventually(t, "nothing of it is there", func() string {
			if on := made(t, w.management, "own"); len(on) > 0 {
				return fmt.Sprint(on)
			}
			return ""
		})
	})
	t.Run("the namespace is that of a Klusterlet", func(t *testing.T) { checkSharedNamespace(t, w) })
	hanging, lying := hubsThatHang(t, w), hubsThatLie(t, w)
	first := detached("first")
	first.Spec.Clusterhub.Components = []string{"cluster-provider", "leftovers"}
	// As in a copy of one that was being deleted: the annotation must not make the controller give up on the hub.
	first.Annotations = map[string]string{operatorv1.AnnotationEvictionTimestamp: "2001-01-01T00:00:00Z"}
	w.create(first)
	w.condition("first", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
	front := &operatortest.Front{}
	w.giveData(first, front.Start(t, w.hub.AdminConfig()))
	w.condition("first", operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
	hanging()
	t.Run("nothing is asked while nothing changes", func(t *testing.T) { checkQuiet(t, front) })
	t.Run("a component is not wanted any more", func(t *testing.T) { checkPrune(t, w) })
	t.Run("the hub has a ClusterManager already", func(t *testing.T) {
		second := detached("second")
		w.create(second)
		w.condition("second", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		w.give(second, w.hub)
		w.condition("second", operatorv1.ConditionClusterManagerApplied, metav1.ConditionFalse, "has another owner")
		if on := made(t, w.hub, "second"); len(on) > 0 {
			t.Errorf("it has made %v", on)
		}
		before := made(t, w.hub, "first")
		remove("second")
		w.gone("second")
		if after := made(t, w.hub, "first"); len(after) != len(before) {
			t.Errorf("with the second one %d objects of the first have gone", len(before)-len(after))
		}
	})
	t.Run("the secret is gone, and comes back", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: first.ServerNamespace(), Name: operatorv1.ExternalHubKubeconfig}}
		if err := w.management.client.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		remove("first")
		eventually(t, "it is said since when the hub cannot be reached", func() string {
			cm := w.read("first")
			if cm == nil {
				t.Fatal("it is gone, and the hub is as it was")
			}
			if cm.Annotations[operatorv1.AnnotationEvictionTimestamp] == "" {
				return fmt.Sprint(cm.Annotations)
			}
			return ""
		})
		w.condition("first", operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse, "leaves the remaining objects there")
		// The hub responds again, but an object has a finalizer. If the hub becomes unreachable again, the timeout starts over.
		release := w.hold(t, "first")
		w.give(first, w.hub)
		eventually(t, "it is not said any more that the hub cannot be reached", func() string {
			return w.read("first").Annotations[operatorv1.AnnotationEvictionTimestamp]
		})
		release()
		w.gone("first")
		eventually(t, "the hub has nothing of it", func() string {
			if on := made(t, w.hub, "first"); len(on) > 0 { // the deletion of namespaces takes time
				return fmt.Sprint(on)
			}
			return ""
		})
	})
	t.Run("a pod is still there", func(t *testing.T) { checkHeldPod(t, w) })
	lying()
	w.stop()
	t.Run("the operator is killed again and again", func(t *testing.T) { checkKilled(t, w) })
	t.Run("the hub refuses something", func(t *testing.T) { checkRefusals(t, w) })
	t.Run("the namespace was deleted first", func(t *testing.T) { checkNamespaceFirst(t, w) })
	t.Run("half of it is there", func(t *testing.T) { checkHalf(t, w) })
	w.startController()
	t.Run("the hub is gone for good", func(t *testing.T) {
		lost := detached("lost")
		w.create(lost)
		w.condition("lost", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		w.give(lost, w.hub)
		w.condition("lost", operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
		w.hub.Stop()
		remove("lost")
		w.condition("lost", operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse, "leaves the remaining objects there")
		w.clock.step(giveUpAfter + time.Minute)
		w.change("lost", func(cm *operatorv1.ClusterManager) {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "example.com/look", "again")
		})
		w.gone("lost")
		w.told("lost", corev1.EventTypeNormal, operatorv1.ReasonClusterManagerApplied, "")
		w.told("lost", corev1.EventTypeWarning, reasonGivenUp, operatorv1.LabelClusterManager+"=lost")
	})
}

// checkSharedNamespace has namespaces in use by Klusterlets: in mode Hosted they could have the same name. None is taken over, and none is deleted.
func checkSharedNamespace(t *testing.T, w *world) {
	t.Helper()
	hosted := func(name string) *operatorv1.ClusterManager {
		cm := detached(name)
		cm.Spec.DeployOption.Mode = operatorv1.InstallModeHosted
		return cm
	}
	leave := func(name string) {
		t.Helper()
		if err := w.management.client.Delete(t.Context(), hosted(name)); err != nil {
			t.Fatal(err)
		}
		w.gone(name)
		namespace := &corev1.Namespace{}
		if err := w.management.client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil || namespace.DeletionTimestamp != nil {
			t.Errorf("the namespace %s has gone with the ClusterManager: %v", name, err)
		}
	}
	shared := map[string]string{klusterlet.LabelShared: ""}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: shared}}, hosted("theirs"))
	w.condition("theirs", operatorv1.ConditionClusterManagerApplied, metav1.ConditionFalse, "belongs to the agent of a Klusterlet")
	if on := made(t, w.management, "theirs"); len(on) > 0 {
		t.Errorf("it has made %v", on)
	}
	leave("theirs")

	w.create(hosted("ours"))
	w.condition("ours", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
	namespace := &corev1.Namespace{}
	if err := w.management.client.Get(t.Context(), client.ObjectKey{Name: "ours"}, namespace); err != nil {
		t.Fatal(err)
	}
	before := namespace.DeepCopy()
	namespace.Labels[klusterlet.LabelShared] = ""
	if err := w.management.client.Patch(t.Context(), namespace, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	leave("ours")
}

// checkHeldPod lets the deletion of a Deployment hang, as for a pod that terminates slowly. The rights of the pod are deleted after it.
func checkHeldPod(t *testing.T, w *world) {
	t.Helper()
	cm := detached("held")
	w.create(cm)
	w.condition(cm.Name, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
	w.give(cm, w.hub)
	w.condition(cm.Name, operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
	var all appsv1.DeploymentList
	if err := w.management.client.List(t.Context(), &all, client.InNamespace(cm.ServerNamespace())); err != nil || len(all.Items) == 0 {
		t.Fatal(len(all.Items), err)
	}
	owner := metav1.NewControllerRef(&all.Items[0], appsv1.SchemeGroupVersion.WithKind("Deployment"))
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.ServerNamespace(), Name: "held",
		Finalizers: []string{"example.com/runs"}, OwnerReferences: []metav1.OwnerReference{*owner}}}
	w.create(held)
	before := len(made(t, w.hub, cm.Name))
	if err := w.management.client.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	w.condition(cm.Name, operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse,
		"waiting until it is gone: Deployment "+all.Items[0].Name+" of the management cluster")
	eventually(t, "it is to go", func() string {
		if err := w.management.client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp == nil {
			return fmt.Sprint(held, err)
		}
		return ""
	})
	if left := len(made(t, w.hub, cm.Name)); left == 0 || left > before {
		t.Errorf("of %d objects on the hub %d are left before the pod has ended", before, left)
	}
	held.Finalizers = nil
	if err := w.management.client.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.gone(cm.Name)
}

// hold blocks the deletion of a ClusterRole of a ClusterManager on the hub until release is called.
func (w *world) hold(t *testing.T, name string) (release func()) {
	t.Helper()
	list := &rbacv1.ClusterRoleList{}
	if err := w.hub.client.List(t.Context(), list, client.MatchingLabels{operatorv1.LabelClusterManager: name}); err != nil || len(list.Items) == 0 {
		t.Fatalf("%s has no ClusterRoles on the hub: %v", name, err)
	}
	held := &list.Items[0]
	patch := func(finalizers string) {
		t.Helper()
		data := fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers)
		if err := w.hub.client.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, data)); err != nil {
			t.Fatal(err)
		}
	}
	patch(`["example.com/hold"]`)
	return func() { t.Helper(); patch("null") }
}
