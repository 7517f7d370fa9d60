// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// withConfig adds a configuration for the ConfigMap of a name to a spec.
func (w *world) withConfig(spec workv1.ManifestWorkSpec, name string, config workv1.ManifestConfigOption) workv1.ManifestWorkSpec {
	config.ResourceIdentifier = workv1.ResourceIdentifier{Resource: "configmaps", Namespace: w.namespace, Name: name}
	spec.ManifestConfigs = append(spec.ManifestConfigs, config)
	return spec
}

// fedBack returns the first feedback value of a work.
func (w *world) fedBack(name string) string {
	work := w.work(name)
	if work == nil || len(work.Status.ResourceStatus.Manifests) == 0 || len(work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values) == 0 {
		return ""
	}
	return *work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[0].Value.String
}

func feedbackOf(path string) []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "v", Path: path}}}}
}

func TestStrategy_ReadOnly(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.put("a", w.withConfig(w.spec(w.configMap("cm", "{k: other}")), "cm", workv1.ManifestConfigOption{
		UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}, FeedbackRules: feedbackOf(".data.k")}))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	w.eventuallySaid("a", workv1.WorkAvailable, "False: False")
	made, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(t.Context(), worktest.Parse(w.configMap("cm", "{k: v1}")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("the feedback", "v1", func() string { return w.fedBack("a") })
	w.eventuallySaid("a", workv1.WorkAvailable, "True: True")
	w.change(w.target("cm"), func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "v2"} })
	w.eventually("the feedback", "v2", func() string { return w.fedBack("a") })
	if got := w.recorded("a"); got != "" {
		t.Errorf("it is recorded as %q", got)
	}
	w.delete("a")
	w.eventuallyGone("a")
	if have := w.get(w.target("cm")); have == nil || have.GetUID() != made.GetUID() || len(have.GetOwnerReferences()) > 0 || w.data("cm") != "map[k:v2]" {
		t.Errorf("it has become %v", have)
	}
}

// TestStrategy_ChangesBetweenUpdates: an object that one strategy applied is applied by the next.
func TestStrategy_ChangesBetweenUpdates(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	by := func(strategy workv1.UpdateStrategy, data string) {
		w.put("a", w.withConfig(w.spec(w.configMap("cm", data)), "cm", workv1.ManifestConfigOption{UpdateStrategy: &strategy}))
		w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	}
	expect := func(want string) {
		t.Helper()
		if got := w.data("cm"); got != want {
			t.Errorf("the data are %s, want %s", got, want)
		}
	}
	by(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, "{k: '1'}")
	by(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, "{k: '2'}")
	expect("map[k:1]")
	by(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, "{k: '2'}")
	expect("map[k:2]")
	ignored := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{
		Force: true, IgnoreFields: []workv1.IgnoreField{
			{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".data.k"}}}}}
	by(ignored, "{k: '3', l: '1'}")
	expect("map[k:2 l:1]")
	if w.get(w.target("cm")).GetAnnotations()[workv1.ManifestConfigSpecHashAnnotationKey] == "" {
		t.Error("it has no hash of the manifest")
	}
	uid := w.get(w.target("cm")).GetUID()
	by(ignored, "{k: '4', l: '2'}")
	expect("map[k:2 l:2]")
	if w.get(w.target("cm")).GetUID() != uid {
		t.Error("it was made anew")
	}

	ignored.ServerSideApply.IgnoreFields[0] = workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JQPathExpressions: []string{".x["}}
	w.put("a", w.withConfig(w.spec(w.configMap("cm", "{}")), "cm", workv1.ManifestConfigOption{UpdateStrategy: &ignored}))
	w.eventuallySaid("a", workv1.WorkApplied, "False: False")
	applied := meta.FindStatusCondition(w.work("a").Status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestApplied)
	if applied.Reason != "AppliedManifestSSAIgnoreFieldError" {
		t.Errorf("it says %+v", applied)
	}
}

// TestComplete: a complete object is not created again, until the work desires a different state.
func TestComplete(t *testing.T) {
	w := newWorld(t)
	stop := w.start(w.newAgent())
	spec := func(value string) workv1.ManifestWorkSpec {
		return w.withConfig(w.spec(w.configMap("cm", fmt.Sprintf("{k: %s}", value))), "cm", workv1.ManifestConfigOption{
			ConditionRules: []workv1.ConditionRule{{Condition: workv1.WorkComplete, Type: workv1.CelConditionExpressionsType,
				CelExpressions: []string{"object.data.k == 'done'"}}}})
	}
	w.put("a", spec("begun"))
	w.eventuallySaid("a", workv1.WorkComplete, "False: False")
	w.put("a", spec("done"))
	w.eventuallySaid("a", workv1.WorkComplete, "True: True")
	if err := w.client.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "cm", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventuallyIdle()
	stop()
	w.start(w.newAgent())
	w.eventuallyIdle()
	if w.get(w.target("cm")) != nil {
		t.Error("it was made again")
	}
	w.put("a", spec("anew"))
	w.eventually("the data", "map[k:anew]", func() string { return w.data("cm") })
	w.delete("a")
	w.eventuallyGone("a")
}

// TestStrategy_PreservesIntegers applies integers that float64 cannot represent, by each strategy.
func TestStrategy_PreservesIntegers(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for i, strategy := range []workv1.UpdateStrategyType{workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeServerSideApply} {
		for j, want := range []int64{1<<53 + 1, math.MaxInt64} {
			name := fmt.Sprintf("web-%d-%d", i, j)
			spec := w.spec(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: 0,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: %d, containers: [{name: web, image: web}]}}}}`,
				name, w.namespace, want))
			spec.ManifestConfigs = []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: w.namespace, Name: name},
				UpdateStrategy:     &workv1.UpdateStrategy{Type: strategy},
			}}
			w.put(name, spec)
			w.eventuallySaid(name, workv1.WorkApplied, "True: True")
			have := w.get(apply.Target{GroupVersionResource: deployments, Namespace: w.namespace, Name: name})
			got, _, err := unstructured.NestedInt64(have.Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
			if got != want || err != nil {
				t.Errorf("by %s %d becomes %d: %v", strategy, want, got, err)
			}
		}
	}
}
