// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// made returns all objects of a ClusterManager on a cluster, with their resource versions.
func made(t *testing.T, c *cluster, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := c.client.List(t.Context(), list, client.MatchingLabels{operatorv1.LabelClusterManager: name}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			all[strings.TrimPrefix(k.Kind+" "+o.GetNamespace()+"/"+o.GetName(), "/")] = o.GetResourceVersion()
		}
	}
	return all
}

// TestDetached_MakesHubOfClusterWithoutNodes: a cluster without nodes becomes a hub whose server runs elsewhere, is not written to while nothing
// changes, is repaired after changes, and is a plain cluster again at the end.
func TestDetached_MakesHubOfClusterWithoutNodes(t *testing.T) {
	w := newWorld(t)
	cm := detached("blue")
	cm.Spec.Clusterhub.Components = []string{componentProvider}
	w.create(cm)
	// The status tells the user which Secret to create, and its namespace exists.
	w.condition("blue", operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "Secret blue-open-cluster-management-hub/external-hub-kubeconfig does not exist")
	w.condition("blue", operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse, "external-hub-kubeconfig does not exist")
	if on := made(t, w.hub, "blue"); len(on) > 0 {
		t.Errorf("the hub has %v", on)
	}
	w.give(cm, w.hub)
	w.condition("blue", operatorv1.ConditionReadyToApply, metav1.ConditionTrue, "")
	w.condition("blue", operatorv1.ConditionClusterManagerApplied, metav1.ConditionTrue, "")
	w.condition("blue", operatorv1.ConditionClusterManagerAvailable, metav1.ConditionFalse, "hub-apiserver has no pod that is ready")
	w.condition("blue", operatorv1.ConditionHubRegistrationDegraded, metav1.ConditionTrue, "hub-apiserver has 0 of 1")
	w.condition("blue", operatorv1.ConditionProgressing, metav1.ConditionTrue, "hub-apiserver has 0 of 1")
	checkSides(t, w)
	t.Run("each server has its own rights", func(t *testing.T) { checkRights(t, w, cm) })

	w.runAPIServer(cm)
	w.available("blue")
	if cm := w.read("blue"); cm.Status.ObservedGeneration != cm.Generation {
		t.Errorf("the status is about generation %d, and the ClusterManager is of generation %d", cm.Status.ObservedGeneration, cm.Generation)
	}
	eventually(t, "all pods are ready", func() string {
		w.playKubelet(cm.ServerNamespace())
		c := meta.FindStatusCondition(w.read("blue").Status.Conditions, operatorv1.ConditionProgressing)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "hub-apiserver has 1 of 1") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	t.Run("it serves its API", func(t *testing.T) {
		sets := &unstructured.UnstructuredList{}
		sets.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetList"})
		eventually(t, "sets are listed by the hub", func() string {
			c, err := client.New(w.hub.AdminConfig(), client.Options{Scheme: testScheme()}) // with current discovery
			if err == nil {
				err = c.List(t.Context(), sets)
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
	})
	t.Run("its controllers work", func(t *testing.T) {
		w.run(cm, deploy.Manager, "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=0")
		set := &unstructured.Unstructured{}
		set.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSet"})
		eventually(t, "they make the set of all clusters", func() string {
			c, err := client.New(w.hub.AdminConfig(), client.Options{Scheme: testScheme()})
			if err == nil {
				err = c.Get(t.Context(), client.ObjectKey{Name: "global"}, set)
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
	})
	t.Run("nothing is written while nothing changes", func(t *testing.T) { checkRest(t, w) })
	t.Run("what others change is put right", func(t *testing.T) { checkRepair(t, w) })
	t.Run("a token is renewed without new pods", func(t *testing.T) { checkRenewal(t, w, cm) })
	t.Run("it is taken away", func(t *testing.T) {
		w.ending.Store(true)
		if err := w.management.client.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		w.gone("blue")
		for where, c := range map[string]*cluster{"the hub": w.hub, "the management cluster": w.management} {
			eventually(t, where+" has nothing of it", func() string {
				if left := made(t, c, "blue"); len(left) > 0 {
					return fmt.Sprint(slices.Sorted(maps.Keys(left)))
				}
				return ""
			})
		}
		eventually(t, "the hub's namespaces are gone", func() string {
			for _, name := range []string{deploy.ManagerNamespace, "clusterhub-access", "clusterhub-registration"} {
				if err := w.hub.client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
					return fmt.Sprintf("%s: %v", name, err)
				}
			}
			return ""
		})
	})
}

// available waits until the hub is available. It marks the pods as ready.
func (w *world) available(name string) {
	w.t.Helper()
	eventually(w.t, name+" is available", func() string {
		cm := w.read(name)
		w.playKubelet(cm.ServerNamespace())
		for _, c := range cm.Status.Conditions {
			if c.Type == operatorv1.ConditionClusterManagerAvailable && c.Status != metav1.ConditionTrue {
				return c.Message
			}
		}
		return ""
	})
}

func (w *world) gone(name string) {
	w.t.Helper()
	eventually(w.t, name+" is gone", func() string {
		if cm := w.read(name); cm != nil {
			return fmt.Sprintf("%v %+v", cm.Annotations, cm.Status.Conditions)
		}
		return ""
	})
}

// checkSides verifies which objects are on each side. The servers have no rights on the management cluster, which has no credential of the hub's
// admin except the user's Secret. The hub has no credential at all.
func checkSides(t *testing.T, w *world) {
	t.Helper()
	const namespace = "blue-open-cluster-management-hub"
	on, here := made(t, w.hub, "blue"), made(t, w.management, "blue")
	for _, name := range []string{
		"Service clusterhub-system/hub-apiserver", "ServiceAccount clusterhub-system/hub-controller-manager", "ClusterRole /clusterhub:hub-apiserver",
		"Namespace /clusterhub-access", "FlowSchema /clusterhub-agents", "ValidatingAdmissionPolicy /agents-certificates.clusterhub.dev",
	} {
		if on[name] == "" {
			t.Errorf("the hub has no %s", name)
		}
	}
	for _, name := range []string{
		"Deployment " + namespace + "/hub-apiserver", "Deployment " + namespace + "/hub-controller-manager", "Service " + namespace + "/hub-apiserver",
		"Secret " + namespace + "/hub-apiserver-kubeconfig", "Secret " + namespace + "/hub-certificate-approver-kubeconfig",
		"Deployment " + namespace + "/cluster-provider-kubeconfig", "Secret " + namespace + "/cluster-provider-kubeconfig-kubeconfig",
		"PersistentVolumeClaim " + namespace + "/hub-apiserver", "PodDisruptionBudget " + namespace + "/hub-apiserver",
		"NetworkPolicy " + namespace + "/hub-apiserver",
	} {
		if here[name] == "" {
			t.Errorf("the management cluster has no %s", name)
		}
	}
	for name := range on {
		if kind, _, _ := strings.Cut(name, " "); slices.Contains([]string{"APIService", "Secret", "Deployment"}, kind) {
			t.Errorf("the hub has %s, and no server", name)
		}
	}
	for name := range here {
		if strings.Contains(name, "Role") || !strings.Contains(name, " "+namespace+"/") && name != "Namespace /"+namespace {
			t.Errorf("the management cluster has %s", name)
		}
	}
	checkInventory(t, w, on, here)
}

// checkInventory verifies that the status lists exactly the created objects, except the APIServices, which are created once the server runs.
func checkInventory(t *testing.T, w *world, on, here map[string]string) {
	t.Helper()
	var got, want []string
	for _, r := range w.read("blue").Status.RelatedResources {
		i := slices.IndexFunc(kinds, func(k kind) bool {
			return k.Group == r.Group && k.Version == r.Version && k.Resource == r.Resource
		})
		if i < 0 {
			t.Errorf("the inventory has %+v", r)
		} else if kinds[i] != apiServices {
			got = append(got, kinds[i].Kind+" "+r.Namespace+"/"+r.Name)
		}
	}
	for name := range on {
		want = append(want, name)
	}
	for name := range here {
		if !strings.HasPrefix(name, "EndpointSlice ") { // they have the labels of their Service, set by the cluster
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the inventory has\n%q, want\n%q", got, want)
	}
}

func (w *world) change(name string, change func(*operatorv1.ClusterManager)) {
	w.t.Helper()
	cm := w.read(name)
	before := cm.DeepCopy()
	change(cm)
	if err := w.management.client.Patch(w.t.Context(), cm, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

func checkRepair(t *testing.T, w *world) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "clusterhub:hub-apiserver"}}
	if err := w.hub.client.Delete(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role is back", func() string {
		if err := w.hub.client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		return ""
	})
	key := types.NamespacedName{Namespace: "blue-open-cluster-management-hub", Name: deploy.APIServer}
	service := &corev1.Service{}
	if err := w.management.client.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	service.Spec.Selector = map[string]string{"app.kubernetes.io/name": "thief"}
	if err := w.management.client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Service leads to hub-apiserver again", func() string {
		if err := w.management.client.Get(t.Context(), key, service); err != nil {
			return err.Error()
		}
		if got := service.Spec.Selector["app.kubernetes.io/name"]; got != deploy.APIServer {
			return got
		}
		return ""
	})
}

// checkRenewal advances the clock past the lifetime of tokens.
func checkRenewal(t *testing.T, w *world, cm *operatorv1.ClusterManager) {
	t.Helper()
	key := types.NamespacedName{Namespace: cm.ServerNamespace(), Name: deploy.KubeconfigSecret(deploy.Manager)}
	secret := &corev1.Secret{}
	if err := w.management.client.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	token := string(secret.Data[operatorv1.KeyToken])
	template := w.template(cm, deploy.Manager)
	w.clock.step(27 * 24 * time.Hour)
	w.change("blue", func(cm *operatorv1.ClusterManager) { cm.Spec.WorkImagePullSpec = "" })
	eventually(t, "there is another token", func() string {
		if err := w.management.client.Get(t.Context(), key, secret); err != nil {
			return err.Error()
		}
		if string(secret.Data[operatorv1.KeyToken]) == token {
			return "it is the same"
		}
		return ""
	})
	if got := w.template(cm, deploy.Manager); got != template {
		t.Errorf("the pods are replaced for it: %s, and were %s", got, template)
	}
}
