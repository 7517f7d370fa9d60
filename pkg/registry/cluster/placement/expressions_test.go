// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// selecting makes a placement also select by expressions.
func selecting(expressions ...string) func(*cluster.Placement) {
	return func(p *cluster.Placement) {
		predicate := cluster.ClusterPredicate{}
		predicate.RequiredClusterSelector.CelSelector.CelExpressions = expressions
		p.Spec.Predicates = append(p.Spec.Predicates, predicate)
	}
}

// by returns a stored placement that selects by expressions.
func by(expressions ...string) *cluster.Placement {
	p := placementOf("web")
	p.ObjectMeta = metav1.ObjectMeta{Name: "web", Namespace: "dev", UID: "u", ResourceVersion: "1"}
	selecting(expressions...)(p)
	return p
}

func TestValidate_CompilesExpressions(t *testing.T) {
	const at = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions"
	for expression, says := range map[string]string{
		`managedCluster.metadata.labels["region"] == "eu"`:                                                       "",
		`managedCluster.scores("load").filter(s, s.name == "cpu").all(e, e.value > 80)`:                          "",
		`semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.31.0"))`:                         "",
		`managedCluster.status.clusterClaims.exists(c, c.name == "props" && c.value.parseJSON().tier == "gold")`: "",
		`invalid.expression`:              "undeclared reference to 'invalid'",
		`managedCluster.metadata.`:        "Syntax error",
		`object.metadata.name`:            "undeclared reference to 'object'",
		`"a".matches("(")`:                "missing closing )",
		`authorizer.group("")`:            "undeclared reference to 'authorizer'",
		strings.Repeat("(", 4096):         "recursion",
		strings.Repeat("!", 4096):         "Syntax error",
		strings.Repeat("[1].map(x,", 400): "recursion",
	} {
		errs := validate(by("true", expression))
		switch {
		case says == "":
			if len(errs) > 0 {
				t.Errorf("%s: %v", expression, errs)
			}
		case len(errs) != 1 || errs[0].Field != at+"[1]" || !strings.Contains(errs[0].Error(), says):
			t.Errorf("%s: got %v, want %q of %s[1]", expression, errs, says, at)
		}
	}
}

func TestValidate_StoredExpressionsAreAccepted(t *testing.T) {
	old := by("ofEarlierVersions(managedCluster)")
	if errs := validateUpdate(by("true", "ofEarlierVersions(managedCluster)"), old); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := validateUpdate(by("ofOthers(managedCluster)"), old); len(errs) != 1 {
		t.Errorf("another one: %v", errs)
	}
}

// TestValidate_ErrorsAreShort: every error of an expression quotes all of it.
func TestValidate_ErrorsAreShort(t *testing.T) {
	errs := validate(by("["+strings.Repeat("nobody,", 500)+"1]", "invalid.expression"))
	if len(errs) != 1 || len(errs[0].Error()) > 1024 || !strings.Contains(errs[0].Error(), "undeclared reference to 'nobody'") {
		t.Errorf("%d faults: %.2000v", len(errs), errs)
	}
	if got := firstError(errors.New(strings.Repeat("é", 512))); len(got) > maxMessage || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// TestValidate_CompilationIsBounded: expressions beyond the limit are not compiled.
func TestValidate_CompilationIsBounded(t *testing.T) {
	errs := validate(by(strings.Split(strings.Repeat("invalid,", 1000), ",")[:1000]...))
	for _, err := range errs {
		if strings.Contains(err.Error(), "undeclared") {
			t.Fatal(err)
		}
	}
	if len(errs) == 0 {
		t.Error("1000 expressions are allowed")
	}
}

// BenchmarkValidate measures the cost of the maximum number of longest expressions.
func BenchmarkValidate(b *testing.B) {
	long := func(i int) string {
		text := "true"
		for len(text) < 4000 {
			text += ` && managedCluster.metadata.name != "` + strings.Repeat("x", i%7) + `"`
		}
		return text[:strings.LastIndex(text, " && ")] + strings.Repeat(" ", i)
	}
	p := placementOf("web")
	p.Namespace = "dev"
	for i := range 4 {
		var expressions []string
		for j := range 16 {
			expressions = append(expressions, long(i*4+j))
		}
		selecting(expressions...)(p)
	}
	for b.Loop() {
		if errs := validate(p); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
