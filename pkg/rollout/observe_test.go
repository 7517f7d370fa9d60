// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// conditions returns conditions such as "Applied=True@2", with the time of their last change.
func conditions(t *testing.T, texts ...string) (all []metav1.Condition) {
	t.Helper()
	for _, text := range texts {
		text, message, _ := strings.Cut(text, ":")
		kind, rest, _ := strings.Cut(text, "=")
		status, generation, _ := strings.Cut(rest, "@")
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), ObservedGeneration: int64(generation[0] - '0'), Message: message,
			LastTransitionTime: metav1.NewTime(start),
		})
	}
	return all
}

func deployment(numbers map[string]int64) ManifestStatus {
	return ManifestStatus{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web", Numbers: numbers}
}

func TestObserve(t *testing.T) {
	pod := func(texts map[string]string) []ManifestStatus {
		return []ManifestStatus{{Kind: "Pod", Name: "p", Texts: texts}}
	}
	for name, test := range map[string]struct {
		conditions []string
		manifests  []ManifestStatus
		byRules    bool
		want       Progress
		waits      string
	}{
		"nothing":                   {want: Unapplied, waits: "waits to be applied"},
		"applied before":            {conditions: []string{"Applied=True@1", "Available=True@2"}, want: Unapplied, waits: "waits to be applied at generation 2"},
		"applied of a later one":    {conditions: []string{"Applied=True@3"}, want: Unapplied, waits: "waits to be applied at generation 2"},
		"not applied":               {conditions: []string{"Applied=False@2:no such\x1b kind", "Progressing=False@2"}, want: Unapplied, waits: "not applied: no such kind"},
		"applied":                   {conditions: []string{"Applied=True@2"}, want: Progresses, waits: "applied; waits to be available"},
		"available before":          {conditions: []string{"Applied=True@2", "Available=True@1"}, want: Progresses, waits: "applied; waits to be available at generation 2"},
		"not available":             {conditions: []string{"Applied=True@2", "Available=False@2:1 of 3"}, want: Progresses, waits: "applied; waits to be available: 1 of 3"},
		"available":                 {conditions: []string{"Applied=True@2", "Available=True@2"}, want: Succeeds},
		"rule not evaluated yet":    {conditions: []string{"Applied=True@2", "Available=True@2"}, byRules: true, want: Unapplied, waits: "applied; waits for the condition Progressing, which a rule sets"},
		"progressing of before":     {conditions: []string{"Applied=True@2", "Available=True@2", "Progressing=False@1"}, want: Unapplied, waits: "waits for the condition Progressing at generation 2"},
		"degraded of before":        {conditions: []string{"Applied=True@2", "Progressing=False@2", "Degraded=False@1"}, want: Unapplied, waits: "waits for the condition Degraded at generation 2"},
		"progressing":               {conditions: []string{"Applied=True@2", "Progressing=True@2:1 of 2 pods"}, want: Progresses, waits: "progressing: 1 of 2 pods"},
		"progressing unknown":       {conditions: []string{"Applied=True@2", "Progressing=Unknown@2", "Degraded=True@2"}, want: Progresses, waits: "progressing"},
		"progressing, not degraded": {conditions: []string{"Applied=True@2", "Progressing=True@2", "Degraded=False@2"}, want: Progresses, waits: "progressing"},
		"failed":                    {conditions: []string{"Applied=True@2", "Progressing=True@2", "Degraded=True@2:crash"}, want: Fails, waits: "degraded: crash"},
		"done":                      {conditions: []string{"Applied=True@2", "Progressing=False@2"}, byRules: true, want: Succeeds},
		"done and degraded":         {conditions: []string{"Applied=True@2", "Progressing=False@2", "Degraded=True@2"}, want: Succeeds},
		"done and not available":    {conditions: []string{"Applied=True@2", "Available=False@2", "Progressing=False@2"}, want: Succeeds},
		"degraded alone":            {conditions: []string{"Applied=True@2", "Available=True@2", "Degraded=True@2:crash"}, want: Fails, waits: "degraded: crash"},
		"degraded alone of before":  {conditions: []string{"Applied=True@2", "Available=True@2", "Degraded=True@1:crash"}, want: Unapplied, waits: "waits for the condition Degraded at generation 2"},
		"complete":                  {conditions: []string{"Applied=True@2", "Available=False@2", "Complete=True@2"}, want: Succeeds},
		"complete before":           {conditions: []string{"Applied=True@2", "Available=False@2", "Complete=True@1"}, want: Progresses, waits: "applied; waits to be available"},
		"a deployment is not ready": {
			conditions: []string{"Applied=True@2", "Available=True@2"},
			manifests:  []ManifestStatus{{Kind: "ConfigMap"}, deployment(map[string]int64{"Replicas": 3, "ReadyReplicas": 1})},
			want:       Progresses, waits: "Deployment ns/web: 1 of 3 replicas are ready",
		},
		"a deployment has none that are available": {
			conditions: []string{"Applied=True@2", "Available=True@2"},
			manifests:  []ManifestStatus{deployment(map[string]int64{"Replicas": 3, "ReadyReplicas": 3})},
			want:       Progresses, waits: "Deployment ns/web: 0 of 3 replicas are ready",
		},
		"a deployment is ready": {
			conditions: []string{"Applied=True@2", "Available=True@2"},
			manifests:  []ManifestStatus{deployment(map[string]int64{"Replicas": 3, "ReadyReplicas": 3, "AvailableReplicas": 3})}, want: Succeeds,
		},
		"nothing is known of a deployment": {conditions: []string{"Applied=True@2", "Available=True@2"}, manifests: []ManifestStatus{deployment(nil)}, want: Succeeds},
		"a job runs": {
			conditions: []string{"Applied=True@2", "Available=True@2"},
			manifests:  []ManifestStatus{{Group: "batch", Kind: "Job", Name: "j", Texts: map[string]string{"JobComplete": "False"}}},
			want:       Progresses, waits: "Job j is not complete",
		},
		"a pod has failed": {conditions: []string{"Applied=True@2", "Available=True@2"}, manifests: pod(map[string]string{"PodPhase": "Failed"}), want: Fails, waits: "Pod p has failed"},
		"a pod waits":      {conditions: []string{"Applied=True@2", "Available=True@2"}, manifests: pod(map[string]string{"PodPhase": "Pending"}), want: Progresses, waits: "Pod p is not ready"},
		"a pod is over": {
			conditions: []string{"Applied=True@2", "Available=True@2"}, manifests: pod(map[string]string{"PodPhase": "Succeeded", "PodReady": "False"}), want: Succeeds,
		},
		"rules count more than readiness": {
			conditions: []string{"Applied=True@2", "Progressing=False@2"}, manifests: pod(map[string]string{"PodPhase": "Failed"}), byRules: true, want: Succeeds,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Observe(WorkStatus{Generation: 2, Conditions: conditions(t, test.conditions...), Manifests: test.manifests}, test.byRules)
			if got.Progress != test.want || got.Waits != test.waits {
				t.Errorf("got %d %q, want %d %q", got.Progress, got.Waits, test.want, test.waits)
			}
		})
	}
}

func TestObserve_MessageIsOneLine(t *testing.T) {
	o := Observe(WorkStatus{Generation: 1, Conditions: conditions(t, "Applied=False@1:"+strings.Repeat("ä\n", 10_000))}, false)
	if len(o.Waits) > 160 || strings.ContainsAny(o.Waits, "\n\x1b") || !strings.HasSuffix(o.Waits, "…") {
		t.Errorf("%d bytes: %q", len(o.Waits), o.Waits)
	}
}

func TestWellKnown(t *testing.T) {
	if !WellKnown("apps", "Deployment", "ReadyReplicas") || WellKnown("apps", "Deployment", "Other") || WellKnown("", "ConfigMap", "ReadyReplicas") {
		t.Error("not what is used")
	}
}
