// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestTwoAgents_OfOneClusterConverge: two agents apply the works, with the same ID or with different ones, and when everything is as desired,
// neither sends any more requests.
func TestTwoAgents_OfOneClusterConverge(t *testing.T) {
	for _, second := range []string{"the same ID", "another ID"} {
		t.Run(second, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.newAgent())
			if second == "another ID" {
				w.agentID += "-second"
			}
			w.start(w.newAgent())
			for i := range 5 {
				for _, name := range []string{"a", "b"} {
					w.put(name, w.withConfig(w.spec(w.configMap(name, fmt.Sprintf("{k: v%d}", i))), name, workv1.ManifestConfigOption{FeedbackRules: feedbackOf(".data.k")}))
				}
			}
			for _, name := range []string{"a", "b"} {
				w.eventuallySaid(name, workv1.WorkApplied, "True: True")
				w.eventually("the feedback of "+name, "v4", func() string { return w.fedBack(name) })
			}
			w.eventuallyIdle()
			w.change(w.target("a"), func(have *unstructured.Unstructured) { have.Object["data"] = map[string]any{"k": "drift"} })
			w.eventually("what has drifted", "map[k:v4]", func() string { return w.data("a") })
			w.eventuallyIdle()
			uid := w.get(w.target("a")).GetUID()
			w.put("a", w.spec(w.configMap("a", "{k: last}")))
			w.eventually("what was changed", "map[k:last]", func() string { return w.data("a") })
			if got := w.get(w.target("a")); got.GetUID() != uid || len(got.GetOwnerReferences()) != 1 {
				t.Errorf("it was made anew, or has several owners: %v", got.Object["metadata"])
			}
			w.eventuallyIdle()
			for _, name := range []string{"a", "b"} {
				w.delete(name)
				w.eventuallyGone(name)
				if got := w.data(name) + w.recorded(name); got != "<none><none>" {
					t.Errorf("of %s there is left: %s", name, got)
				}
			}
		})
	}
}
