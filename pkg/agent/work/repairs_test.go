// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestRepairs_AreLimitedPerHour: if another program undoes each repair at once, the agent writes the object at most 20 times in an hour.
func TestRepairs_AreLimitedPerHour(t *testing.T) {
	for _, random := range []float64{0, 0.999} {
		r := repairs{delays: repeat.Backoff{Shortest: minRepair, Longest: maxRepair, Random: func() float64 { return random }}}
		begin := time.Unix(0, 0)
		writes := 0
		for now := begin; now.Sub(begin) < time.Hour; now = now.Add(max(r.wait(now), time.Millisecond)) {
			r.add(now, apply.Repair{Field: ".spec.replicas", Manager: "autoscaler"})
			writes++
			if (r.contested(now) != "") != (writes > 2) {
				t.Errorf("after %d writes it is contested: %q", writes, r.contested(now))
			}
		}
		if writes > 20 || writes < 10 {
			t.Errorf("there are %d writes", writes)
		}
		if now := begin.Add(2 * time.Hour); r.contested(now) != "" {
			t.Error("it is contested an hour after the other program has ended")
		}
		r.add(begin.Add(2*time.Hour), apply.Repair{})
		if r.wait(begin.Add(2*time.Hour)) > 0 {
			t.Error("a repair of another day has to wait")
		}
	}
}

// TestContested has a program that undoes at once what the agent applies, for each strategy that writes.
func TestContested(t *testing.T) {
	for name, c := range map[string]struct {
		strategy workv1.UpdateStrategy
		deletes  bool
		fails    bool // each second write of the agent fails
	}{
		"Update":                 {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, false, false},
		"Update, fails":          {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, false, true},
		"Replace":                {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReplace}, false, false},
		"ServerSideApply":        {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true}}, false, false},
		"CreateOnly, is deleted": {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, true, false},
		"Update, is deleted":     {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			of := w.client.Resource(configMaps).Namespace(w.namespace)
			watcher, err := of.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=cm"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			applied, ended := 0, make(chan struct{})
			go func() { // the other program
				defer close(ended)
				for {
					var event watch.Event
					select {
					case event = <-watcher.ResultChan():
					case <-ctx.Done():
						return
					}
					have, ok := event.Object.(*unstructured.Unstructured)
					if value, _, _ := unstructured.NestedString(have.Object, "data", "k"); !ok || event.Type == watch.Deleted || value != "ours" {
						continue
					}
					applied++
					if c.deletes {
						err = of.Delete(ctx, "cm", metav1.DeleteOptions{})
					} else {
						_ = unstructured.SetNestedField(have.Object, "theirs", "data", "k")
						_, err = of.Update(ctx, have, metav1.UpdateOptions{FieldManager: "rival"})
					}
					if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
						t.Error(err)
					}
				}
			}()
			var writes atomic.Int32
			w.around = func(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
				if c.fails && request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/configmaps/cm") && writes.Add(1)%2 == 0 {
					return nil, errors.New("not by me")
				}
				return do()
			}
			w.start(w.newAgent())
			w.put("a", w.withConfig(w.spec(w.configMap("cm", "{k: ours}")), "cm", workv1.ManifestConfigOption{UpdateStrategy: &c.strategy}))
			w.eventuallySaid("a", workv1.WorkContested, "True: True")
			stop()
			<-ended
			watcher.Stop()
			if applied > 6 {
				t.Errorf("it was applied %d times", applied)
			}
			want := `The field .data.k is changed by "rival" repeatedly`
			if c.deletes {
				want = "The object is deleted by another program repeatedly"
			}
			if got := w.message("a", 0, workv1.ManifestContested); !strings.HasPrefix(got, want) {
				t.Errorf("the manifest says %q", got)
			}
			if got := meta.FindStatusCondition(w.work("a").Status.Conditions, workv1.WorkContested); !strings.HasPrefix(got.Message, "ConfigMap "+w.namespace+"/cm: "+want) {
				t.Errorf("the work says %q", got.Message)
			}
			// A change of the work is applied at once, and resets the count.
			w.put("a", w.withConfig(w.spec(w.configMap("cm", "{k: new}")), "cm", workv1.ManifestConfigOption{UpdateStrategy: &c.strategy}))
			w.eventuallySaid("a", workv1.WorkApplied, "True: True")
			worktest.Eventually(t, "the condition is gone", func() bool {
				return w.message("a", 0, workv1.ManifestContested) == "" && meta.FindStatusCondition(w.work("a").Status.Conditions, workv1.WorkContested) == nil
			})
		})
	}
}
