// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
)

// TestAgentUpgrade_KlusterletWaitsForAgents: without a condition rule, a rollout would consider a Klusterlet complete as soon as it is
// applied.
func TestAgentUpgrade_KlusterletWaitsForAgents(t *testing.T) {
	o := &upgradeOptions{klusterlet: "k1", image: "clusterhub/hub-agent:v2"}
	manifest, config := o.manifest()
	if manifest.GetName() != "k1" || manifest.GetKind() != "Klusterlet" || len(config.ConditionRules) != 1 {
		t.Fatalf("the manifest is %v, and its rules %v", manifest, config.ConditionRules)
	}
	spec := &operatorv1.KlusterletSpec{}
	data, err := json.Marshal(manifest.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, spec); err != nil || spec.RegistrationImagePullSpec != o.image || spec.WorkImagePullSpec != o.image {
		t.Errorf("the spec is %s: %v", data, err)
	}
	set := rules.Compile(config.ConditionRules)
	for name, test := range map[string]struct {
		ConditionStatus string
		want            metav1.ConditionStatus
	}{
		"hub-operator has not seen it":      {`{}`, metav1.ConditionTrue},
		"it runs as it was before":          {`{"observedGeneration": 1, "conditions": [{"type": "Applied", "status": "True"}, {"type": "Available", "status": "True"}]}`, metav1.ConditionTrue},
		"its agents do not run":             {`{"observedGeneration": 2, "conditions": [{"type": "Applied", "status": "True"}, {"type": "Available", "status": "False"}]}`, metav1.ConditionTrue},
		"it is not applied":                 {`{"observedGeneration": 2, "conditions": [{"type": "Available", "status": "True"}]}`, metav1.ConditionTrue},
		"its agents run with the new image": {`{"observedGeneration": 2, "conditions": [{"type": "Available", "status": "True"}, {"type": "Applied", "status": "True"}]}`, metav1.ConditionFalse},
	} {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(`{"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": "k1", "generation": 2}, "status": ` +
			test.ConditionStatus + `}`)); err != nil {
			t.Fatal(err)
		}
		conditions, _, err := set.Evaluate(t.Context(), object)
		if err != nil || len(conditions) != 1 || conditions[0].Status != test.want {
			t.Errorf("%s: %+v, %v", name, conditions, err)
		}
	}
}
