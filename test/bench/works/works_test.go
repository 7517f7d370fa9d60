// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"encoding/json"
	"strings"
	"testing"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// TestWorkBodies verifies that the bodies that are measured have only fields of their kinds.
func TestWorkBodies(t *testing.T) {
	for name, body := range map[string][]byte{"work": workBody(workGroup+"/v1", "w"), "ConfigMaps": configMapWork("w", 5), "status": workStatusBody()} {
		strict := json.NewDecoder(strings.NewReader(string(body)))
		strict.DisallowUnknownFields()
		work := &workv1.ManifestWork{}
		if err := strict.Decode(work); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(work.Spec.Workload.Manifests)+len(work.Status.ResourceStatus.Manifests) < 2 {
			t.Errorf("%s: no manifests", name)
		}
	}
	if n := len(workBody(workGroup+"/v1", "work-0001")); n < 1900 || n > 2100 {
		t.Errorf("a work has %d bytes", n)
	}
}

func TestWorksResult_Growth(t *testing.T) {
	at := func(heap int) kit.Memory { return kit.Memory{"hub-apiserver": {Heap: heap}} }
	w := &Result{Memory: []memoryResult{{Works: 100, Before: at(1000), After: at(2000)}, {Works: 300, Before: at(1000), After: at(5000)}}}
	if got := w.growth(); got != 1.5 { // 10 each at first, and then 15
		t.Errorf("growth %v", got)
	}
	if got := (&Result{Memory: w.Memory[:1]}).growth(); got != 0 {
		t.Errorf("the growth of one size is %v", got)
	}
}

func TestStages(t *testing.T) {
	for all, want := range map[int]int{1: 1, 3: 1, 4: 2, 10: 2} {
		if got := workStages(all); len(got) != want || got[len(got)-1] != all || got[0] < 1 {
			t.Errorf("%d works are made in %v", all, got)
		}
	}
}

// TestWorkAgent_AtRest verifies that an agent that polls its works is not considered at rest.
func TestWorkAgent_AtRest(t *testing.T) {
	judged := func(onCluster map[string]int) bool {
		var all kit.Targets
		(&AgentResult{RestCores: map[string]float64{}, RestOnCluster: onCluster}).Judge(&all)
		return all[1].Reached
	}
	if !judged(map[string]int{"watch configmaps": 3, "discovery": 2, "update leases": 1}) {
		t.Error("watches and what registration does count")
	}
	if judged(map[string]int{"get configmaps": 1}) || judged(map[string]int{"list appliedmanifestworks": 1}) {
		t.Error("looking at what is watched does not count")
	}
}
