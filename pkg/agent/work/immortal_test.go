// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
)

// strategyOf sets an update strategy for a cluster-scoped object in a spec.
func strategyOf(spec workv1.ManifestWorkSpec, t apply.Target, strategy workv1.UpdateStrategyType) workv1.ManifestWorkSpec {
	update := &workv1.UpdateStrategy{Type: strategy}
	if strategy == workv1.UpdateStrategyTypeServerSideApply {
		update.ServerSideApply = &workv1.ServerSideApplyConfig{Force: true}
	}
	spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: t.Group, Resource: t.Resource, Name: t.Name}, UpdateStrategy: update})
	return spec
}

// belongs reports whether an object belongs to the record with a UID.
func belongs(object *unstructured.Unstructured, record types.UID) bool {
	return apply.Owner{UID: record}.Owns(object)
}

// TestDelete_UndeletableObjects: a work that names objects of the cluster itself can be deleted, whatever its update strategy, and even if an agent
// owned them before. The objects stay, with the fields that the work has written.
func TestDelete_UndeletableObjects(t *testing.T) {
	w := newWorld(t)
	stop := w.start(w.newAgent())
	targets := []apply.Target{
		{GroupVersionResource: namespaces, Name: "default"},
		{GroupVersionResource: namespaces, Name: "kube-system"},
		{GroupVersionResource: namespaces, Name: "kube-public"},
		{GroupVersionResource: namespaces, Name: "kube-node-lease"},
		{GroupVersionResource: priorityClasses, Name: "system-node-critical"},
	}
	label := "example.com/" + w.namespace
	var manifests []string
	for _, target := range targets {
		worktest.Eventually(t, target.String()+" is there", func() bool { return w.get(target) != nil })
		if target.GroupVersionResource == namespaces {
			manifests = append(manifests, "{apiVersion: v1, kind: Namespace, metadata: {name: "+target.Name+", labels: {"+label+": a}}}")
		}
	}
	manifests = append(manifests, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-node-critical}, value: 2000001000}")
	spec := w.spec(manifests...)
	for i, strategy := range []workv1.UpdateStrategyType{workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeServerSideApply,
		workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeCreateOnly} {
		spec = strategyOf(spec, targets[i], strategy)
	}
	w.put("a", spec)
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True True True True")
	w.eventually("the record", "default kube-node-lease kube-public kube-system system-node-critical", func() string { return w.recorded("a") })
	record := w.record("a").GetUID()
	for i, target := range targets {
		have := w.get(target)
		if belongs(have, record) {
			t.Errorf("%s belongs to the work", target)
		}
		if labelled := have.GetLabels()[label] == "a"; labelled != (i < 3) {
			t.Errorf("%s has the labels %v", target, have.GetLabels())
		}
	}
	stop()

	t.Log("An agent that has taken them for its own has left the reference")
	for _, target := range targets {
		w.change(target, func(o *unstructured.Unstructured) {
			o.SetOwnerReferences(append(o.GetOwnerReferences(), apply.Owner{Name: w.record("a").GetName(), UID: record}.Reference()))
		})
	}
	w.delete("a")
	w.start(w.newAgent())
	w.eventuallyGone("a")
	if w.record("a") != nil {
		t.Error("the record was left")
	}
	for _, target := range targets {
		if have := w.get(target); have == nil || have.GetDeletionTimestamp() != nil || belongs(have, record) {
			t.Errorf("%s has become %v", target, have)
		}
	}
}

// TestDelete_Forbidden: a work that may not delete an object reports that, and what to do; a new deleteOption then takes effect, though the work is
// being deleted.
func TestDelete_Forbidden(t *testing.T) {
	w := newWorld(t)
	var refused atomic.Int64
	w.around = func(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		if request.Method != http.MethodDelete || !strings.HasSuffix(request.URL.Path, "/configmaps/held") {
			return do()
		}
		refused.Add(1)
		status := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "held", nil).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, err := json.Marshal(status)
		return &http.Response{StatusCode: http.StatusForbidden, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body))}, err
	}
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("held", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	record := w.record("a").GetUID()
	w.delete("a")
	worktest.Eventually(t, "the work says what to do", func() bool {
		got := w.deleting("a")
		return strings.Contains(got, "deleting configmaps "+w.namespace+"/held") && strings.Contains(got, "spec.deleteOption")
	})
	if refused.Load() == 0 {
		t.Error("the test has refused nothing")
	}
	spec := w.spec(w.configMap("held", "{}"))
	spec.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeOrphan, "")
	w.put("a", spec)
	w.eventuallyGone("a")
	if have := w.get(w.target("held")); have == nil || belongs(have, record) {
		t.Errorf("it has become %v", have)
	}
}
