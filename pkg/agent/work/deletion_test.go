// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// ordered returns the spec of a work with a definition, a custom resource of it that has a finalizer, and a ConfigMap.
func (w *world) ordered() (spec workv1.ManifestWorkSpec, resource apply.Target, definition apply.Target) {
	w.Helper()
	group := w.namespace + ".example.com"
	spec = w.spec(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.`+group+`}, spec: {group: `+group+`, scope: Namespaced,
  names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`,
		"{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: x, namespace: "+w.namespace+"}}",
		w.configMap("cm", "{k: v}"))
	return spec, apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}, Namespace: w.namespace, Name: "x"},
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Name: "widgets." + group}
}

// TestDelete_InOrder: the controller that removes the finalizer of a custom resource needs the other objects of the work.
func TestDelete_InOrder(t *testing.T) {
	for _, how := range []string{"the work is deleted", "the manifests leave the work", "after the timeout"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			a := w.newAgent()
			if how == "after the timeout" {
				a.stepTimeout = time.Millisecond
			}
			w.start(a)
			spec, resource, definition := w.ordered()
			w.put("a", spec)
			w.eventuallySaid("a", workv1.WorkApplied, "True: True True True")
			w.change(resource, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/controller"}) })
			if how == "the manifests leave the work" {
				w.put("a", w.spec())
			} else {
				w.delete("a")
			}
			worktest.Eventually(t, "the custom resource is being deleted", func() bool { return w.get(resource).GetDeletionTimestamp() != nil })
			if how == "after the timeout" {
				worktest.Eventually(t, "the ConfigMap is gone", func() bool { return w.get(w.target("cm")) == nil })
				w.eventually("the condition says so", "true", func() string {
					return map[bool]string{true: "true"}[strings.Contains(w.deleting("a"), "for more than 1ms, so that others are deleted without it")]
				})
			} else {
				if how == "the work is deleted" {
					worktest.Eventually(t, "the work says what it waits for", func() bool {
						got := w.deleting("a")
						return strings.Contains(got, "the deletion of widgets") && strings.Contains(got, "2 objects that are deleted after that")
					})
				}
				w.eventuallyIdle()
				if w.get(w.target("cm")) == nil || w.get(definition).GetDeletionTimestamp() != nil {
					t.Error("the rest does not wait for the custom resource")
				}
			}
			w.change(resource, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			worktest.Eventually(t, "all is gone", func() bool { return w.get(w.target("cm")) == nil && w.get(definition) == nil })
			if how == "the manifests leave the work" {
				w.eventually("the record", "", func() string { return w.recorded("a") })
			} else {
				w.eventuallyGone("a")
			}
		})
	}
}
