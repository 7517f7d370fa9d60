// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "test"}, "status": {"readyReplicas": 1, "replicas": 2,
	"conditions": [{"type": "Available", "status": "True"}]}}`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

func job(conditions string) string {
	return `{"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [` + conditions + `]}}`
}

func pod(phase string) string {
	return `{"apiVersion": "v1", "kind": "Pod", "status": {"phase": "` + phase + `"}}`
}

func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions}
}

func withMessage(rule workv1.ConditionRule, message, expression string) workv1.ConditionRule {
	rule.Message, rule.MessageExpression = message, expression
	return rule
}

func describe(conditions []metav1.Condition) string {
	var texts []string
	for i := range conditions {
		c := &conditions[i]
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(texts, "\n")
}

func TestEvaluate(t *testing.T) {
	complete := workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestComplete}
	active := withMessage(celRule("Active", "object.status.active == 1"), "", `result ? "one is active" : "not one, but " + string(object.status.active) + " are active"`)
	for name, test := range map[string]struct {
		object string
		rules  []workv1.ConditionRule
		want   string
	}{
		"no rules":                        {deployment, nil, ""},
		"W047: a Job begins":              {`{"apiVersion": "batch/v1", "kind": "Job"}`, []workv1.ConditionRule{complete}, "Complete=False ConditionRuleEvaluated: Job is not finished"},
		"W047: a Job runs":                {job(`{"type": "Complete", "status": "False"}, {"type": "Other", "status": "True"}`), []workv1.ConditionRule{complete}, "Complete=False ConditionRuleEvaluated: Job is not finished"},
		"W047: a Job is complete":         {job(`{"type": "Complete", "status": "True"}`), []workv1.ConditionRule{complete}, "Complete=True ConditionRuleEvaluated: Job is finished"},
		"W047: a Job has failed":          {job(`{"type": "Failed", "status": "True"}`), []workv1.ConditionRule{complete}, "Complete=True ConditionRuleEvaluated: Job is finished"},
		"W048: a Pod runs":                {pod("Running"), []workv1.ConditionRule{complete}, "Complete=False ConditionRuleEvaluated: Pod is in phase Running"},
		"W048: a Pod has succeeded":       {pod("Succeeded"), []workv1.ConditionRule{complete}, "Complete=True ConditionRuleEvaluated: Pod is in phase Succeeded"},
		"W048: a Pod has failed":          {pod("Failed"), []workv1.ConditionRule{complete}, "Complete=True ConditionRuleEvaluated: Pod is in phase Failed"},
		"a Pod without a status":          {`{"apiVersion": "v1", "kind": "Pod"}`, []workv1.ConditionRule{complete}, "Complete=False ConditionRuleEvaluated: Pod is in phase Unknown"},
		"a well-known one with a message": {pod("Failed"), []workv1.ConditionRule{withMessage(complete, "over", "")}, "Complete=True ConditionRuleEvaluated: over"},
		"with an expression":              {pod("Failed"), []workv1.ConditionRule{withMessage(complete, "over", `string(result)`)}, "Complete=True ConditionRuleEvaluated: true"},
		"W049: not known":                 {pod("Failed"), []workv1.ConditionRule{{Type: workv1.WellKnownConditionsType, Condition: "NotWellKnown"}}, ""},
		"not known of the kind":           {deployment, []workv1.ConditionRule{complete}, ""},
		"W050: one is active":             {`{"apiVersion": "batch/v1", "kind": "Job", "status": {"active": 1}}`, []workv1.ConditionRule{active}, "Active=True ConditionRuleEvaluated: one is active"},
		"W050: two are active":            {`{"apiVersion": "batch/v1", "kind": "Job", "status": {"active": 2}}`, []workv1.ConditionRule{active}, "Active=False ConditionRuleEvaluated: not one, but 2 are active"},
		"W051: a text":                    {deployment, []workv1.ConditionRule{celRule("A", `object.status.conditions[0].status`)}, "A=False ConditionRuleExpressionError: expected bool result, got string"},
		"no such key":                     {deployment, []workv1.ConditionRule{celRule("A", "object.missing")}, "A=False ConditionRuleExpressionError: no such key: missing"},
		"does not compile":                {deployment, []workv1.ConditionRule{celRule("A", "object.")}, "A=False ConditionRuleExpressionError: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | object.\n | .......^"},
		"the first false one ends it":     {deployment, []workv1.ConditionRule{celRule("A", "true", "false", "object.")}, "A=False ConditionRuleEvaluated: Manifest is not A"},
		"all are true":                    {deployment, []workv1.ConditionRule{celRule("A", "true", "object.status.replicas == 2")}, "A=True ConditionRuleEvaluated: Manifest is A"},
		"its own message":                 {deployment, []workv1.ConditionRule{withMessage(celRule("A", "true"), "should work", "")}, "A=True ConditionRuleEvaluated: should work"},
		"an empty message":                {deployment, []workv1.ConditionRule{withMessage(celRule("A", "true"), "should work", `""`)}, "A=True ConditionRuleEvaluated: should work"},
		"a message that does not compile": {deployment, []workv1.ConditionRule{withMessage(celRule("A", "true"), "", "badcel")}, "A=True ConditionRuleEvaluated: ERROR: <input>:1:1: undeclared reference to 'badcel' (in container '')"},
		"a message that is none":          {deployment, []workv1.ConditionRule{withMessage(celRule("A", "true"), "", "1")}, "A=True ConditionRuleEvaluated: expected message expression to have a string result, got int64"},
		"no expression":                   {deployment, []workv1.ConditionRule{celRule("A")}, "A=Unknown ConditionRuleInvalid: expected celExpressions, got none"},
		"no type":                         {deployment, []workv1.ConditionRule{{Type: "x", Condition: "A"}}, "A=Unknown ConditionRuleInvalid: unrecognized condition rule type x"},
		"the agent's own":                 {deployment, []workv1.ConditionRule{celRule("Applied", "true"), celRule("Deleting", "true"), celRule("StatusFeedbackSynced", "true"), celRule("no type", "true")}, ""},
		"result is for messages":          {deployment, []workv1.ConditionRule{celRule("A", "result")}, "A=False ConditionRuleExpressionError: ERROR: <input>:1:1: undeclared reference to 'result' (in container '')\n | result\n | ^"},
		"no scores, no parseJSON":         {deployment, []workv1.ConditionRule{celRule("A", `"1".parseJSON() == 1`)}, "A=False ConditionRuleExpressionError: ERROR: <input>:1:14: undeclared reference to 'parseJSON' (in container '')\n | \"1\".parseJSON() == 1\n | .............^"},
		"two rules":                       {deployment, []workv1.ConditionRule{celRule("A", "true"), celRule("B", "false")}, "A=True ConditionRuleEvaluated: Manifest is A\nB=False ConditionRuleEvaluated: Manifest is not B"},
		"libraries":                       {deployment, []workv1.ConditionRule{celRule("A", `quantity("1Gi").isGreaterThan(quantity("1Mi")) && "%d".format([1]) == "1" && [1, 2].sum() == 3 && object.?none.orValue(1) == 1`)}, "A=True ConditionRuleEvaluated: Manifest is A"},
		"hasConditions":                   {deployment, []workv1.ConditionRule{celRule("A", `hasConditions(object.status) && !hasConditions({}) && !hasConditions("x") && !hasConditions({"conditions": []}) && !hasConditions({"conditions": null}) && !hasConditions(null)`)}, "A=True ConditionRuleEvaluated: Manifest is A"},
	} {
		t.Run(name, func(t *testing.T) {
			set := Compile(test.rules)
			for range 2 {
				conditions, cost, err := set.Evaluate(t.Context(), object(t, test.object))
				if got := describe(conditions); got != test.want || err != nil {
					t.Errorf("got\n%s\nwant\n%s\n%v", got, test.want, err)
				}
				if cost > 1000 {
					t.Errorf("it has cost %d", cost)
				}
			}
		})
	}
}

// Progressing and Degraded are supported for all kinds, by their readiness.
func TestEvaluate_Readiness(t *testing.T) {
	progressing := workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestProgressing}
	degraded := workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestDegraded}
	for text, want := range map[string]string{
		deployment:       "Progressing=True ConditionRuleEvaluated: its controller has not seen it yet\nDegraded=False ConditionRuleEvaluated: its controller has not seen it yet",
		pod("Succeeded"): "Progressing=False ConditionRuleEvaluated: it has finished\nDegraded=False ConditionRuleEvaluated: it has finished",
		pod("Failed"):    "Progressing=True ConditionRuleEvaluated: it has failed: no reason is given\nDegraded=True ConditionRuleEvaluated: it has failed: no reason is given",
		`{"apiVersion": "v1", "kind": "ConfigMap"}`: "Progressing=False ConditionRuleEvaluated: it is there\nDegraded=False ConditionRuleEvaluated: it is there",
		`{"apiVersion": "v1", "kind": "Secret"}`:    "",
	} {
		conditions, _, err := Compile([]workv1.ConditionRule{progressing, degraded}).Evaluate(t.Context(), object(t, text))
		if got := describe(conditions); got != want || err != nil {
			t.Errorf("%s\ngot\n%s\nwant\n%s\n%v", text, got, want, err)
		}
	}
	conditions, _, _ := Compile([]workv1.ConditionRule{withMessage(progressing, "", `result ? "on the way" : "there"`)}).Evaluate(t.Context(), object(t, pod("Running")))
	if got := describe(conditions); got != "Progressing=True ConditionRuleEvaluated: on the way" {
		t.Errorf("got %s", got)
	}
}

// No rule reads the data of a Secret, neither by its message nor by its result.
func TestEvaluate_NoSecrets(t *testing.T) {
	secret := object(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {"a": "s3cret"}}, "data": {"password": "s3cret"}, "stringData": {"password": "s3cret"}}`)
	rules := []workv1.ConditionRule{
		celRule("Guess", `object.data.password.startsWith("s")`), celRule("Any", `object.exists(k, object[k] == {"password": "s3cret"})`),
		celRule("Annotation", `"a" in object.metadata.annotations`), withMessage(celRule("Message", "true"), "", `string(object.data.password)`), celRule("Name", `object.metadata.name == "s"`),
	}
	conditions, _, _ := Compile(rules).Evaluate(t.Context(), secret)
	want := "Guess=False ConditionRuleExpressionError: no such key: data\nAny=False ConditionRuleEvaluated: Manifest is not Any\n" +
		"Annotation=False ConditionRuleExpressionError: no such key: annotations\nMessage=True ConditionRuleEvaluated: no such key: data\nName=True ConditionRuleEvaluated: Manifest is Name"
	if got := describe(conditions); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// loop has a high cost with few characters.
const loop = `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))`

// All rules of an object share a budget, including their messages; the results are bounded, too.
func TestEvaluate_IsBounded(t *testing.T) {
	var rules []workv1.ConditionRule
	for i := range 64 {
		rules = append(rules, withMessage(celRule(fmt.Sprint("Rule", i), loop, loop, loop), "", `"`+strings.Repeat("x", 100)+`".replace("", "`+strings.Repeat("y", 3000)+`") + string(`+loop+`)`))
	}
	rules = append(rules, celRule("Long", strings.Repeat(" ", 5000)+"true"), withMessage(celRule("LongMessage", "true"), strings.Repeat("m", 5000), ""))
	set := Compile(rules)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	conditions, cost, err := set.Evaluate(t.Context(), object(t, deployment))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 || cost > Budget || err != nil {
		t.Errorf("%d MiB were allocated, it has cost %d, %v", used>>20, cost, err)
	}
	texts := describe(conditions)
	for _, want := range []string{
		"Rule0=True ConditionRuleEvaluated: ", "Rule63=False ConditionRuleExpressionError: CEL evaluation budget exceeded",
		"Long=False ConditionRuleExpressionError: expected an expression of at most 4096 bytes, got 5004",
	} {
		if !strings.Contains(texts, want) {
			t.Errorf("none is %q:\n%.5000s", want, texts)
		}
	}
	for i := range conditions {
		if len(conditions[i].Message) > status.MaxMessage {
			t.Errorf("%s has a message of %d bytes", conditions[i].Type, len(conditions[i].Message))
		}
	}
	// One expression exceeds the budget by itself.
	single := strings.Replace(loop, "a + b + c + d > 0", "[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))", 1)
	conditions, _, _ = Compile([]workv1.ConditionRule{celRule("A", single), celRule("B", "true")}).Evaluate(t.Context(), object(t, deployment))
	if got := describe(conditions); !strings.HasPrefix(got, "A=False ConditionRuleExpressionError: CEL evaluation budget exceeded\nB=False ConditionRuleExpressionError: CEL evaluation budget exceeded") {
		t.Errorf("got %s", got)
	}
}

// Interrupted rules return no conditions.
func TestEvaluate_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conditions, _, err := Compile([]workv1.ConditionRule{celRule("A", loop)}).Evaluate(ctx, object(t, deployment)); len(conditions) > 0 || err == nil {
		t.Errorf("got %v, %v", conditions, err)
	}
}

func TestCache(t *testing.T) {
	c := NewCache(2)
	rules := []workv1.ConditionRule{celRule("A", "true")}
	first := c.Set(rules)
	if c.Set([]workv1.ConditionRule{celRule("A", "true")}) != first || c.Set([]workv1.ConditionRule{celRule("A", "false")}) == first {
		t.Error("rules are found by what they are")
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if conditions, _, err := c.Set([]workv1.ConditionRule{celRule("A", fmt.Sprint(i, " == ", i))}).Evaluate(context.Background(), object(t, deployment)); err != nil || conditions[0].Status != "True" {
				t.Errorf("got %v, %v", conditions, err)
			}
		})
	}
	group.Wait()
	if c.Set(rules) == first {
		t.Error("it keeps more than it should")
	}
	if conditions, _, _ := c.Set(nil).Evaluate(t.Context(), object(t, deployment)); len(conditions) > 0 {
		t.Errorf("no rules have made %v", conditions)
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add("object.status.conditions.exists(c, c.type == 'Available')", "string(object.status.replicas)", deployment)
	f.Add(loop, `"x".replace("", "y")`, job(""))
	f.Add("hasConditions(object.status)", "object.data.a", `{"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}}`)
	f.Fuzz(func(t *testing.T, expression, message, text string) {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		before := fmt.Sprint(o)
		rules := []workv1.ConditionRule{withMessage(celRule("A", expression), "", message), {Type: workv1.WellKnownConditionsType, Condition: "Complete"}}
		conditions, cost, err := Compile(rules).Evaluate(t.Context(), o)
		if err != nil || cost > Budget || len(conditions) == 0 {
			t.Errorf("%q: %v, cost %d, %v", expression, conditions, cost, err)
		}
		for i := range conditions {
			if c := &conditions[i]; len(c.Message) > status.MaxMessage || c.Reason == "" || c.Status == "" {
				t.Errorf("%q: %+v", expression, c)
			}
		}
		if fmt.Sprint(o) != before {
			t.Errorf("%q has changed %s to %v", expression, before, o)
		}
	})
}
