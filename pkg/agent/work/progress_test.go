// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestProgress_OfFeedback: a Deployment with feedback of its status progresses until its controller reports that its replicas are those of the
// last spec. Before that, its numbers are missing or are those of the previous spec.
func TestProgress_OfFeedback(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	target := apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: w.namespace, Name: "web"}
	spec := func(image string) workv1.ManifestWorkSpec {
		spec := w.spec(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %s}, spec: {selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: %s}]}}}}`, w.namespace, image))
		spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: w.namespace, Name: "web"},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		}}
		return spec
	}
	// This stands in for the controller of Deployments, which this cluster does not have.
	observed := func(generation int) {
		t.Helper()
		patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}`, generation)
		_, err := w.client.Resource(target.GroupVersionResource).Namespace(target.Namespace).
			Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	w.put("a", spec("first"))
	w.eventuallySaid("a", workv1.WorkProgressing, "True: True")
	observed(1)
	w.eventuallySaid("a", workv1.WorkProgressing, "False: False")
	w.eventuallySaid("a", workv1.WorkDegraded, "False: False")
	w.put("a", spec("second"))
	w.eventuallySaid("a", workv1.WorkProgressing, "True: True")
	observed(2)
	w.eventuallySaid("a", workv1.WorkProgressing, "False: False")
}
