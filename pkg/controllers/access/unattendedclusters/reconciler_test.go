// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package unattendedclusters

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// look reconciles a Cluster of an age, and returns its new state.
func look(t *testing.T, age time.Duration, profiles []client.Object, change func(*v1alpha1.Cluster)) (*v1alpha1.Cluster, reconcile.Result) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "blue", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-age)),
	}}
	cluster.Spec.Profile = "dev.kind"
	change(cluster)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(cluster).WithObjects(append(profiles, cluster)...).Build()
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{client: hub, clock: clocktesting.NewFakePassiveClock(now), recorder: recorder}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if told := len(recorder.Events) > 0; told != (missing(cluster) != nil) {
		t.Errorf("an event: %t", told)
	}
	return cluster, result
}

func missing(cluster *v1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(cluster.Status.Conditions, "ProviderMissing")
}

func condition(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(now)}
}

func TestReconcile_ReportsMissingProvider(t *testing.T) {
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "dev.kind"}}
	profile.Spec.ProviderRef.Name = "kind"
	held := func(c *v1alpha1.Cluster) {
		c.Status.Conditions = []metav1.Condition{condition("AccessRequestsDeleted", "False")}
	}
	for want, change := range map[string]func(*v1alpha1.Cluster){
		`check whether the provider "kind" of its ClusterProfile "dev.kind" runs`: held,
		`its ClusterProfile "none" no longer exists`:                              func(c *v1alpha1.Cluster) { c.Spec.Profile = "none" },
	} {
		cluster, _ := look(t, time.Minute, []client.Object{profile}, change)
		if c := missing(cluster); c == nil || c.Status != "True" || c.Reason != "NotLookedAt" || !strings.HasSuffix(c.Message, want) {
			t.Errorf("%+v, want %q", c, want)
		}
		if cluster.Status.Phase != "" {
			t.Errorf("the phase is %s", cluster.Status.Phase)
		}
	}
}

func TestReconcile_GracePeriod(t *testing.T) {
	cluster, result := look(t, 20*time.Second, nil, func(*v1alpha1.Cluster) {})
	if missing(cluster) != nil || result.RequeueAfter != 40*time.Second {
		t.Errorf("%+v, looked at again after %s", cluster.Status, result.RequeueAfter)
	}
}

func TestReconcile_ClearsConditionOnceProviderActs(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Cluster){
		"a phase":      func(c *v1alpha1.Cluster) { c.Status.Phase = "Progressing" },
		"a condition":  func(c *v1alpha1.Cluster) { c.Status.Conditions = []metav1.Condition{condition("Ready", "False")} },
		"a generation": func(c *v1alpha1.Cluster) { c.Status.ObservedGeneration = 1 },
	} {
		cluster, result := look(t, time.Hour, nil, func(c *v1alpha1.Cluster) {
			change(c)
			c.Status.Conditions = append(c.Status.Conditions, condition("ProviderMissing", "True"))
		})
		if missing(cluster) != nil || result != (reconcile.Result{}) {
			t.Errorf("%s: %+v", name, cluster.Status)
		}
	}
}

func TestReconcile_IgnoresOthers(t *testing.T) {
	cluster, _ := look(t, time.Hour, nil, func(c *v1alpha1.Cluster) {
		c.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
	})
	if missing(cluster) != nil {
		t.Error("a Cluster that is ignored is written to")
	}
}
