// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
)

// clock is a clock that the test sets.
type clock struct{ at time.Time }

// spend evaluates as often as it may during a time, and returns the cost.
func (c *clock) spend(p *paces, work string, cost uint64, during time.Duration) (sum uint64) {
	for end := c.at.Add(during); c.at.Before(end); {
		if wait := p.wait(work); wait > 0 {
			c.at = c.at.Add(wait)
			continue
		}
		p.recordCost(work, cost)
		sum += cost
		c.at = c.at.Add(time.Millisecond)
	}
	return sum
}

// perHour is the cost that a processor can spend in an hour.
const perHour = 3600 * 2_000_000

func TestPaces(t *testing.T) {
	c := &clock{time.Now()}
	p := &paces{now: func() time.Time { return c.at }}
	if got := c.spend(p, "dear", rules.Budget, time.Hour); got > perHour/20+10_000_000 || got < perHour/40 {
		t.Errorf("one work has spent %d in an hour", got)
	}
	c.spend(p, "cheap", 100, time.Second)
	if p.wait("cheap") > 10*time.Second {
		t.Errorf("a cheap one waits for %s", p.wait("cheap"))
	}

	t.Log("All that are dear take a tenth, and each gets its turn")
	sum, turns := uint64(0), map[string]int{}
	for end := c.at.Add(time.Hour); c.at.Before(end); c.at = c.at.Add(time.Second) {
		for i := range 50 {
			if work := fmt.Sprint("dear", i); p.wait(work) == 0 {
				p.recordCost(work, rules.Budget)
				sum += rules.Budget
				turns[work]++
			}
		}
		if p.wait("cheap") > 0 {
			t.Fatalf("a cheap one waits for %s", p.wait("cheap"))
		}
	}
	if sum > perHour/8 || sum < perHour/20 {
		t.Errorf("they have spent %d in an hour", sum)
	}
	for work, n := range turns {
		if n < 5 {
			t.Errorf("%s has had %d turns", work, n)
		}
	}

	t.Log("What is always new takes no more")
	sum = 0
	for i, end := 0, c.at.Add(time.Hour); c.at.Before(end); i++ {
		if work := fmt.Sprint("new", i); p.wait(work) == 0 {
			p.recordCost(work, rules.Budget)
			sum += rules.Budget
		}
		c.at = c.at.Add(time.Second)
	}
	if sum > perHour/8 || p.wait("cheap") > 0 {
		t.Errorf("they have spent %d in an hour, and a cheap one waits for %s", sum, p.wait("cheap"))
	}

	t.Log("Works that are not known to be cheap have two workers, and the others all")
	c.at = c.at.Add(time.Hour)
	p.recordCost("dear", 10*rules.Budget)
	p.recordCost("frugal", 100)
	c.at = c.at.Add(time.Hour)
	for work, want := range map[string]time.Duration{"dear": 0, "brand-new": 0} {
		if wait := p.begin(work); wait != want {
			t.Errorf("%s waits for %s", work, wait)
		}
	}
	if p.begin("newer") == 0 || p.begin("frugal") > 0 {
		t.Error("a third one has a worker, or a cheap one has none")
	}
	p.recordCost("brand-new", 1)
	if wait := p.begin("newer"); wait > 0 {
		t.Errorf("the third one waits for %s though another one has ended", wait)
	}
	p.recordCost("newer", 1)
	p.recordCost("dear", 1)

	t.Log("Who is made anew waits as before, and nothing is kept for ever")
	p.recordCost("dear", 10*rules.Budget)
	p.forget(func(work string) bool { return work == "cheap" })
	if p.wait("dear") == 0 {
		t.Error("it has not paid")
	}
	c.at = c.at.Add(2 * time.Hour)
	p.forget(func(work string) bool { return work == "cheap" })
	if len(p.works) != 1 {
		t.Errorf("%d works are kept", len(p.works))
	}
}

// TestRules_OneWorkDelaysNoOther: the number of evaluations matters, as the objects change all the time.
func TestRules_OneWorkDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	dear := "[1,2,3,4,5,6,7,8,9,10].all(a, " + "[1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, " +
		"[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))"
	with := func(spec workv1.ManifestWorkSpec, name, expression string) workv1.ManifestWorkSpec {
		spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: w.namespace, Name: name},
			ConditionRules: []workv1.ConditionRule{{Type: workv1.CelConditionExpressionsType, Condition: "Good", CelExpressions: []string{expression}},
				{Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestAvailable, CelExpressions: []string{expression}}}})
		return spec
	}
	a := w.newAgent()
	w.start(a)
	const many = 20
	var manifests []string
	for i := range many {
		manifests = append(manifests, w.configMap(fmt.Sprint("dear", i), "{k: v}"))
	}
	spec := w.spec(manifests...)
	for i := range many {
		spec = with(spec, fmt.Sprint("dear", i), dear)
	}
	w.put("dear", spec)
	w.eventuallySaid("dear", workv1.WorkApplied, "True:"+strings.Repeat(" True", many))
	// The first of them has used up the budget of the work.
	if said := w.said("dear", workv1.ManifestAvailable); strings.Count(said, "True") > 0 || strings.Count(said, "False") > many/2 {
		t.Errorf("the rules were evaluated, or others say it: %s", said)
	}
	if wait := a.evaluator.paces.wait("dear"); wait == 0 {
		t.Error("the work does not wait")
	}
	w.put("good", with(w.spec(w.configMap("good", "{k: v}")), "good", `object.data.k == "v"`))
	w.eventuallySaid("good", "Good", "True: True")
	for _, value := range []string{"w", "v", "x"} {
		want := "False: False"
		if value == "v" {
			want = "True: True"
		}
		w.put("good", with(w.spec(w.configMap("good", "{k: "+value+"}")), "good", `object.data.k == "v"`))
		w.eventuallySaid("good", "Good", want)
	}
	if wait := a.evaluator.paces.wait("good"); wait > 0 {
		t.Errorf("the good one waits for %s", wait)
	}
	t.Log("What waits is applied and repaired")
	w.change(w.target("dear9"), func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "other"} })
	w.eventually("the data", "map[k:v]", func() string { return w.data("dear9") })
}

// TestFeedback_Lists: lists are fed back as the agent's options configure it.
func TestFeedback_Lists(t *testing.T) {
	w := newWorld(t)
	a := w.newAgent()
	a.evaluator.feedback.Raw, a.evaluator.feedback.MaxJSONRaw = true, 20
	w.start(a)
	spec := w.spec(w.configMap("cm", "{k: v}"))
	spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: w.namespace, Name: "cm"},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
			{Name: "data", Path: ".data"}, {Name: "long", Path: ".metadata"}}}}}}
	w.put("a", spec)
	w.eventually("the value", `{"k":"v"}`, func() string {
		for _, m := range w.work("a").Status.ResourceStatus.Manifests {
			for _, v := range m.StatusFeedbacks.Values {
				if v.Value.JsonRaw != nil {
					return *v.Value.JsonRaw
				}
			}
		}
		return ""
	})
}

// TestRules_DelayedEvaluation: delayed rules are evaluated when they are due, without a change.
func TestRules_DelayedEvaluation(t *testing.T) {
	w := newWorld(t)
	a := w.newAgent()
	a.evaluator.paces.first = time.Now().Add(5 * time.Second)
	w.start(a)
	spec := w.spec(w.configMap("cm", "{}"))
	spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: w.namespace, Name: "cm"},
		ConditionRules:     []workv1.ConditionRule{{Type: workv1.CelConditionExpressionsType, Condition: "Good", CelExpressions: []string{"true"}}}}}
	w.put("a", spec)
	w.eventuallySaid("a", "Good", "True: True")
	if a.evaluator.paces.wait("a") > 0 {
		t.Error("it waits")
	}
}
