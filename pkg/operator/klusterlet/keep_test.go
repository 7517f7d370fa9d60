// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// places has the objects of a Klusterlet in each mode: %k is its name, %m its namespace on the managed cluster, %a the namespace of the pods, %p each
// part, and %d its Deployment.
var places = map[operatorv1.InstallMode]struct{ here, there string }{
	operatorv1.InstallModeHosted: {
		here: "Deployment %a/%k-%d; Namespace %a; NetworkPolicy %a/%k-agents; Role %a/clusterhub:hub-agent:%k; " +
			"RoleBinding %a/clusterhub:hub-agent:%k; Secret %a/external-managed-kubeconfig-%p; ServiceAccount %a/%k-%p-sa",
		there: ofManaged + "; Namespace %m; ServiceAccount %m/%k-%p-sa",
	},
	operatorv1.InstallModeDefault: {
		here: ofManaged + "; Deployment %a/%k-%d; Namespace %a; NetworkPolicy %a/%k-agents; Role %a/clusterhub:hub-agent:%k; " +
			"RoleBinding %a/clusterhub:hub-agent:%k; ServiceAccount %a/%k-%p-sa",
	},
}

// ofManaged has the cluster-scoped objects on the managed cluster.
const ofManaged = "ClusterRole clusterhub:hub-agent-works-namespaces:%k; ClusterRole clusterhub:hub-agent-works:%k; ClusterRole clusterhub:hub-agent:%k; " +
	"ClusterRoleBinding clusterhub:hub-agent-works-namespaces:%k; ClusterRoleBinding clusterhub:hub-agent-works-rights:%k; " +
	"ClusterRoleBinding clusterhub:hub-agent-works:%k; ClusterRoleBinding clusterhub:hub-agent:%k; " +
	"CustomResourceDefinition appliedmanifestworks.work.open-cluster-management.io; CustomResourceDefinition clusterclaims.cluster.open-cluster-management.io"

func placesOf(k *operatorv1.Klusterlet) (here, there []string) {
	parts := map[string]string{"registration": "registration-agent", "work": "work-agent"}
	if k.IsSingleton() {
		parts = map[string]string{"agent": "agent"}
	}
	fill := func(text string) (all []string) {
		if text == "" {
			return nil
		}
		for one := range strings.SplitSeq(text, "; ") {
			for part, deployment := range parts {
				all = append(all, strings.NewReplacer("%k", k.Name, "%m", k.ManagedNamespace(), "%a", k.AgentNamespace(), "%p", part, "%d", deployment).Replace(one))
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	mode := operatorv1.InstallModeDefault
	if k.IsDetached() {
		mode = operatorv1.InstallModeHosted
	}
	return fill(places[mode].here), fill(places[mode].there)
}

func (w *world) expectAll(k *operatorv1.Klusterlet) {
	w.Helper()
	here, there := placesOf(k)
	if w.there == w.here {
		here = append(here, there...)
		slices.Sort(here)
		here = slices.Compact(here)
		there = here
	}
	if got := w.of(w.here, k); !slices.Equal(got, here) {
		w.Errorf("on the cluster of the pods there are\n%q, want\n%q", got, here)
	}
	if got := w.of(w.there, k); !slices.Equal(got, there) {
		w.Errorf("on the managed cluster there are\n%q, want\n%q", got, there)
	}
}

func (w *world) expectNothing(k *operatorv1.Klusterlet) {
	w.Helper()
	for side, c := range map[string]client.Client{"of the pods": w.here, "that is managed": w.there} {
		if got := w.of(c, k); len(got) > 0 {
			w.Errorf("on the cluster %s is left: %q", side, got)
		}
	}
}

// TestReconcile_NoRedundantWrites: at rest nothing is written, and no request is sent to the managed cluster.
func TestReconcile_NoRedundantWrites(t *testing.T) {
	w := newWorld(t)
	count := &writes{}
	w.wrap = count.wrap
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeDetached, nil)
	w.until(r, k, "nothing is written any more", func(*operatorv1.Klusterlet) bool {
		before := count.n
		w.once(r, k)
		return w.last == nil && count.n == before
	})
	version := w.now(k).ResourceVersion
	before := count.n
	for range 3 {
		w.once(r, k)
	}
	if count.n != before || w.now(k).ResourceVersion != version {
		t.Errorf("it was written: %q", count.names[before:])
	}
	// A new process finds everything as desired.
	again := w.reconciler()
	for range 3 {
		w.once(again, k)
	}
	if count.n != before {
		t.Errorf("a new process wrote: %q", count.names[before:])
	}
	w.delete(k)
	w.until(again, k, "it is gone", isGone)
}

func TestReconcile_ReportsIncompleteSecrets(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeDetached, nil)
	says := func(what string) {
		t.Helper()
		w.until(r, k, "it says "+what, func(k *operatorv1.Klusterlet) bool {
			ready, available := condition(k, operatorv1.ConditionReadyToApply), condition(k, operatorv1.ConditionKlusterletAvailable)
			return ready.Status == metav1.ConditionFalse && ready.Reason == operatorv1.ReasonKlusterletPrepareFailed && strings.Contains(ready.Message, what) &&
				available.Status == metav1.ConditionFalse && strings.Contains(available.Message, what)
		})
	}
	name := k.AgentNamespace() + "/external-managed-kubeconfig"
	says("Secret " + name + " does not exist")
	w.secret(k, operatorv1.ExternalManagedKubeconfig, nil)
	says("Secret " + name + " has no key kubeconfig")
	w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": []byte("secret-words")})
	says("is refused (KubeconfigUnreadable)")
	insecure := strings.ReplaceAll(string(w.source), "certificate-authority-data:", "insecure-skip-tls-verify: true\n    x:")
	w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": []byte(insecure)})
	says("is refused (Insecure)")
	w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": w.source})
	says("Secret " + k.AgentNamespace() + "/bootstrap-hub-kubeconfig does not exist")
	if now := w.now(k); slices.Contains(now.Finalizers, operatorv1.KlusterletHostedFinalizer) || len(w.of(w.there, k)) > 0 {
		t.Error("the managed cluster was written to")
	}
	w.secret(k, operatorv1.BootstrapHubKubeconfig, nil)
	says("Secret " + k.AgentNamespace() + "/bootstrap-hub-kubeconfig has no key kubeconfig")
	w.secret(k, operatorv1.BootstrapHubKubeconfig, map[string][]byte{"kubeconfig": []byte("secret-words")})
	says("key kubeconfig of Secret " + k.AgentNamespace() + "/bootstrap-hub-kubeconfig is refused: it cannot be read as a kubeconfig")
	w.secret(k, operatorv1.BootstrapHubKubeconfig, map[string][]byte{"kubeconfig": bytes.ReplaceAll(operatortest.Bootstrap, []byte("https"), []byte("http"))})
	says("is refused: it is insecure")
	if hub := condition(w.now(k), operatorv1.ConditionHubConnectionDegraded); hub.Reason != reasonBootstrapRefused || len(w.of(w.there, k)) > 0 {
		t.Errorf("of the hub it says %+v, and on the managed cluster are %q", hub, w.of(w.there, k))
	}
	w.secret(k, operatorv1.BootstrapHubKubeconfig, map[string][]byte{"kubeconfig": operatortest.Bootstrap})
	w.until(r, k, "it is applied", isApplied)
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
}

// TestFinalize_WithoutKubeconfig: a Klusterlet whose managed cluster was never reached can be deleted without a kubeconfig.
func TestFinalize_WithoutKubeconfig(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeDetached, nil)
	w.until(r, k, "it waits", func(k *operatorv1.Klusterlet) bool {
		return condition(k, operatorv1.ConditionReadyToApply).Status == metav1.ConditionFalse
	})
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// TestReconcile_RepairsAndPrunes: changes by others are reverted, and objects that are no longer desired are deleted.
func TestReconcile_RepairsAndPrunes(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeHosted, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.ManagedNamespace(), Name: k.WorkServiceAccount()}}
	if err := w.there.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: k.AgentNamespace(), Name: k.WorkDeployment()}
	if err := w.here.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.AutomountServiceAccountToken = new(true)
	if err := w.here.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	w.until(r, k, "all is as it was", func(*operatorv1.Klusterlet) bool {
		return w.here.Get(t.Context(), key, deployment) == nil && !*deployment.Spec.Template.Spec.AutomountServiceAccountToken &&
			w.there.Get(t.Context(), client.ObjectKeyFromObject(account), account) == nil
	})
	// A previous version had another role. An object of another owner that the status lists is not deleted.
	old := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.ManagedNamespace(), Name: "old", Labels: ownerOf(k, r.managementUID).Labels}}
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.ManagedNamespace(), Name: "foreign"}}
	now := w.now(k)
	for _, o := range []*corev1.ServiceAccount{old, foreign} {
		if err := w.there.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		now.Status.RelatedResources = append(now.Status.RelatedResources, operatorv1.RelatedResourceMeta{Version: "v1", Resource: "serviceaccounts", Namespace: o.Namespace, Name: o.Name})
	}
	if err := w.here.Status().Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	w.until(r, k, "what is not wanted is gone", func(k *operatorv1.Klusterlet) bool {
		return isApplied(k) && !slices.ContainsFunc(k.Status.RelatedResources, func(r operatorv1.RelatedResourceMeta) bool { return r.Name == "old" })
	})
	if err := w.there.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("what is not the Klusterlet's: %v", err)
	}
	w.expectAll(w.now(k))
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
}

// TestReconcile_RejectsNamespaceOfOther: the Secrets in a namespace belong to one agent.
func TestReconcile_RejectsNamespaceOfOther(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	first := w.applied(r, operatorv1.InstallModeSingleton, nil)
	second := w.klusterlet(operatorv1.InstallModeSingleton, func(k *operatorv1.Klusterlet) { k.Name, k.Spec.Namespace = "z"+k.Name, first.Spec.Namespace })
	w.until(r, second, "it says so", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "belongs to the agent of Klusterlet "+first.Name)
	})
	if got := w.of(w.here, second); len(got) > 0 {
		t.Errorf("there is %q", got)
	}
	for _, k := range []*operatorv1.Klusterlet{second, first} {
		w.delete(k)
		w.until(r, k, "it is gone", isGone)
		w.expectNothing(k)
	}
}
