// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rulecheck

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

var spec = field.NewPath("spec")

const rule0 = "spec.manifestConfigs[0].conditionRules[0]."

func rule(condition string, expressions ...string) work.ConditionRule {
	return work.ConditionRule{Type: work.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions}
}

func message(text string) work.ConditionRule {
	r := rule("Ready", "true")
	r.MessageExpression = text
	return r
}

// with returns a spec with each rule in a manifestConfig of its own.
func with(rules ...work.ConditionRule) *work.ManifestWorkSpec {
	s := &work.ManifestWorkSpec{}
	for _, r := range rules {
		s.ManifestConfigs = append(s.ManifestConfigs, work.ManifestConfigOption{ConditionRules: []work.ConditionRule{r}})
	}
	return s
}

var none = &work.ManifestWorkSpec{}

func TestValidate(t *testing.T) {
	known := rule("Applied")
	known.Type = work.WellKnownConditionsType
	unused := rule("Complete", "object.")
	unused.Type = work.WellKnownConditionsType
	const cel, says = rule0 + "celExpressions[0]", rule0 + "messageExpression"
	for name, c := range map[string]struct {
		rule             work.ConditionRule
		at, fault, warns string
	}{
		// Expressions that upstream's agent evaluates.
		"a condition":      {rule: rule("Ready", `object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`)},
		"hasConditions":    {rule: rule("example.com/Ready", `hasConditions(object.status) && size(object.status.conditions) > 0`)},
		"optional fields":  {rule: rule("Ready", `object.?status.?phase.orValue("") in ["Succeeded", "Failed"]`)},
		"libraries":        {rule: rule("Ready", `quantity("1Gi").isGreaterThan(quantity("1Mi")) && [1, 2].sum() == 3 && "a-b".split("-").join("") == "ab" && semver("1.2.3").major() == 1 && isIP("1.2.3.4")`)},
		"of any kind":      {rule: rule("Ready", `object.status.ready`)},
		"Available":        {rule: rule("Available", `true`)},
		"no expression":    {rule: rule("Ready")},
		"a message":        {rule: message(`result ? "it is ready" : "it has " + string(object.status.replicas)`)},
		"of any kind, too": {rule: message(`object.status.message`)},
		"not used":         {rule: unused},
		"a bad pattern":    {rule: rule("Ready", `"a".matches("(")`)},

		"not CEL":             {rule: rule("Ready", `object.`), at: cel, fault: "1:8: Syntax error"},
		"deep":                {rule: rule("Ready", strings.Repeat("(", 4096)), at: cel, fault: "recursion"},
		"a text":              {rule: rule("Ready", `"True"`), at: cel, fault: "expected an expression that makes a bool, got one that makes a string"},
		"a list":              {rule: rule("Ready", `[true]`), at: cel, fault: "got one that makes a list(bool)"},
		"an optional":         {rule: rule("Ready", `object.?status.?ready`), at: cel, fault: "got one that makes a optional_type(dyn)"},
		"what does not fit":   {rule: rule("Ready", `1 + "a" == 2`), at: cel, fault: "found no matching overload for '_+_'"},
		"a message, not CEL":  {rule: message(`"a`), at: says, fault: "Syntax error"},
		"a message of a bool": {rule: message(`result`), at: says, fault: "expected an expression that makes a string, got one that makes a bool"},

		"a function that is not known": {rule: rule("Ready", `ofTheNextVersion(object) && object.isReady()`), at: cel, warns: "undeclared reference to 'ofTheNextVersion'"},
		"a variable that is not known": {rule: rule("Ready", `cluster.ready`), at: cel, warns: "undeclared reference to 'cluster'"},
		"of messages":                  {rule: rule("Ready", `result`), at: cel, warns: "undeclared reference to 'result'"},
		"a message that is not known":  {rule: message(`badcel`), at: says, warns: "undeclared reference to 'badcel'"},
		"of placements":                {rule: rule("Ready", `"1".parseJSON() == 1`), at: cel, warns: "undeclared reference to 'parseJSON'"},

		"no type":                  {rule: rule("no type", "true"), at: rule0 + "condition", fault: "must be the type of a condition"},
		"Applied":                  {rule: rule("Applied", "true"), at: rule0 + "condition", fault: "that the agent does not set itself"},
		"Applied, well known":      {rule: known, at: rule0 + "condition", fault: "that the agent does not set itself"},
		"Deleting":                 {rule: rule("Deleting", "true"), at: rule0 + "condition", fault: "that the agent does not set itself"},
		"StatusFeedbackSynced":     {rule: rule("StatusFeedbackSynced", "true"), at: rule0 + "condition", fault: "that the agent does not set itself"},
		"StatusTruncated":          {rule: rule("StatusTruncated", "true"), at: rule0 + "condition", fault: "that the agent does not set itself"},
		"a prefix that is no name": {rule: rule("a/b/c", "true"), at: rule0 + "condition", fault: "must be the type of a condition"},
	} {
		s := with(c.rule, rule("Other", "true"))
		errs, warnings := Validate(nil, s, none, spec), Warnings(s, spec)
		if c.fault == "" && len(errs) > 0 || c.fault != "" && (len(errs) != 1 || errs[0].Field != c.at || !strings.Contains(errs[0].Error(), c.fault)) {
			t.Errorf("%s: got %v, want %q at %s", name, errs, c.fault, c.at)
		}
		if c.fault == "" && (c.warns == "" && len(warnings) > 0 || c.warns != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], c.at+": ") || !strings.Contains(warnings[0], c.warns))) {
			t.Errorf("%s: warned of %q, want %q at %s", name, warnings, c.warns, c.at)
		}
	}
}

func TestValidate_StoredExpressionsAreAccepted(t *testing.T) {
	old := with(rule("Ready", "object."), rule("Applied", "true"), message("1"))
	moved := with(message("1"), rule("Another", "true"), rule("Applied", "false"), rule("Ready", "true", "object."))
	if errs := Validate(nil, moved, old, spec); len(errs) > 0 {
		t.Error(errs)
	}
	for name, s := range map[string]*work.ManifestWorkSpec{
		"another one": with(rule("Ready", "object..")), "another type": with(rule("Deleting", "true")), "in the other place": with(message("object.")),
	} {
		if errs := Validate(nil, s, old, spec); len(errs) != 1 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestValidate_IsBounded: unlimited input is not compiled, and errors are short.
func TestValidate_IsBounded(t *testing.T) {
	before := field.ErrorList{field.Required(spec, "something else")}
	if errs := Validate(before, with(rule("Ready", "object.")), none, spec); len(errs) != 1 || errs[0].Field != "spec" {
		t.Errorf("with other errors: %v", errs)
	}
	var different, same []work.ConditionRule
	for i := range 20 {
		text := "true" + strings.Repeat(" ", 4080)
		same = append(same, rule(fmt.Sprint("Ready", i), text))
		different = append(different, rule(fmt.Sprint("Ready", i), fmt.Sprintf("%s || %d == 1", text, i)))
	}
	if errs := Validate(nil, with(same...), none, spec); len(errs) > 0 {
		t.Errorf("one expression, often: %v", errs)
	}
	errs := Validate(nil, with(different...), none, spec)
	if len(errs) != 1 || errs[0].Field != "spec.manifestConfigs[16].conditionRules[0].celExpressions[0]" || !strings.Contains(errs[0].Error(), "more than 65536 bytes together") {
		t.Errorf("many: %v", errs)
	}
	if errs := Validate(nil, with(different...), with(different[:10]...), spec); len(errs) > 0 {
		t.Errorf("half of them are new: %v", errs)
	}
	var unknown []work.ConditionRule
	for i := range 200 {
		unknown = append(unknown, rule(fmt.Sprint("Ready", i), fmt.Sprintf("%s%d()", strings.Repeat("x", 3000), i)))
	}
	warnings := Warnings(with(unknown...), spec)
	if len(warnings) != maxWarnings || len(strings.Join(warnings, "")) > maxWarnings*1024 {
		t.Errorf("%d warnings, %d bytes", len(warnings), len(strings.Join(warnings, "")))
	}
	errs = Validate(nil, with(rule("Ready", `"`+strings.Repeat("é", 2000))), none, spec)
	if len(errs) != 1 || len(errs[0].Error()) > 1024 {
		t.Errorf("%.2000v", errs)
	}
}

// BenchmarkValidate measures the cost of the maximum number of longest expressions, and with hits that of the next work of a replica set.
func BenchmarkValidate(b *testing.B) {
	for _, hits := range []bool{false, true} {
		b.Run(fmt.Sprint("hits=", hits), func(b *testing.B) {
			round := 0
			for b.Loop() {
				var rules []work.ConditionRule
				for i := range 16 {
					text := fmt.Sprintf("%d != %d", round, i+1000000)
					for len(text) < 4000 {
						text += ` && object.status.x != "y"`
					}
					rules = append(rules, rule(fmt.Sprint("Ready", i), text))
				}
				if !hits {
					round++
				}
				if errs := Validate(nil, with(rules...), none, spec); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}
