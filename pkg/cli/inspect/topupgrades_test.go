// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestTopAgents_ShowsUpgrades(t *testing.T) {
	s, config := newTop(t)
	maps.DeleteFunc(s.Objects, func(path string, _ map[string]any) bool { return strings.Contains(path, "/manifestworks/") }) // the fake supports no selectors
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", Labels: map[string]string{registration.LabelAgentUpgrade: "true"}}}
	template := func(image string) workv1.ManifestWorkSpec {
		raw, err := json.Marshal(registration.AgentImage(registration.AgentNamespace, image))
		if err != nil {
			t.Fatal(err)
		}
		return workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}}
	}
	set.Spec.ManifestWorkTemplate = template("clusterhub/hub-agent:v2")
	s.Put(set)
	put := func(cluster, image string, conditions ...metav1.Condition) {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "up-1", Generation: 3,
			Labels: map[string]string{work.ReplicaSetLabel: "fleet.up"}}, Spec: template(image)}
		for _, c := range conditions {
			c.ObservedGeneration = 3
			w.Status.Conditions = append(w.Status.Conditions, c)
		}
		s.Put(w)
	}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	applied := condition(workv1.WorkApplied, "True", "")
	upgrades := func(want ...string) {
		t.Helper()
		stdout, _, err := clitest.Run(t, config, "top", "agents", "--sort-by=upgrade")
		if err != nil {
			t.Fatal(err)
		}
		got := clitest.Squeeze(stdout)
		clitest.Says(t, got, want...)
		if strings.Contains(got, "\x1b") {
			t.Errorf("it prints %q", got)
		}
	}
	put("c0", "clusterhub/hub-agent:v1")
	put("c1", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "True", "0 of 1 replicas\x1b are updated"))
	put("c2", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "False", ""))
	upgrades("c1 true True 120m Unknown Unknown false v1.3.0 <none> v2: upgrading: progressing: 0 of 1 replicas", "v2: waits for its turn in the rollout", "v1.2.0 <none> v2: done")
	put("c1", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "True", ""), condition(workv1.ManifestDegraded, "True", "timed out"))
	put("c2", "clusterhub/hub-agent:v2", condition(workv1.WorkApplied, "False", "no work may name it"))
	upgrades("v2: failed: degraded: timed out", "v2: upgrading: not applied: no work may name it")
	s.Refuse("GET /apis/work.open-cluster-management.io/v1alpha1/manifestworkreplicasets", clitest.Forbidden("manifestworkreplicasets", "list"))
	if _, stderr, err := clitest.Run(t, config, "top", "agents"); err != nil || !strings.Contains(stderr, "Not seen: upgrades of agents: ") {
		t.Errorf("%v, %s", err, stderr)
	}
}
