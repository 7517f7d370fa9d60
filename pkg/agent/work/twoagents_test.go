// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestTwoAgents: two agents of one cluster, such as during a change of versions, apply the same objects, and do not overwrite each other's writes.
func TestTwoAgents(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm1", "{k: v0}"), w.configMap("cm2", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	objects, err := w.client.Resource(configMaps).Namespace(w.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=cm1", ResourceVersion: w.get(w.target("cm1")).GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	works, err := w.works.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: w.work("a").ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	const changes = 5
	for i := range changes {
		w.put("a", w.spec(w.configMap("cm1", fmt.Sprintf("{k: v%d}", i+1)), w.configMap("cm2", "{}")))
		w.eventually("cm1", fmt.Sprintf("map[k:v%d]", i+1), func() string { return w.data("cm1") })
		w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	}
	// Both agents must also handle this work, after all status writes for the changes.
	w.put("b", w.spec(w.configMap("cm3", "{}")))
	w.eventuallySaid("b", workv1.WorkApplied, "True: True")
	w.eventuallySaid("b", workv1.WorkAvailable, "True: True")

	// Either may write what the other has already written, and may apply an old spec until it observes the new one.
	if n := modifications(objects); n > 6*changes {
		t.Errorf("cm1 was written %d times for %d changes", n, changes)
	}
	if n := modifications(works); n > 20*changes {
		t.Errorf("the work was written %d times for %d changes", n, changes)
	}
	w.delete("a")
	w.eventuallyGone("a")
	worktest.Eventually(t, "what it had is gone", func() bool {
		return w.get(w.target("cm1")) == nil && w.get(w.target("cm2")) == nil && w.record("a") == nil
	})
	if w.get(w.target("cm3")) == nil {
		t.Error("what another work has is gone as well")
	}
}

// modifications returns the number of modifications that a watch has delivered so far.
func modifications(from watch.Interface) (n int) {
	for {
		select {
		case e := <-from.ResultChan():
			if e.Type == watch.Modified {
				n++
			}
		default:
			return n
		}
	}
}
