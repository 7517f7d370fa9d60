// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

const (
	namespace = "openhorizon.kubernetesNamespace"
	scoped    = namespace + "Scoped"
)

// TestHypotheses has both kinds of node that a policy with a namespace of its own may reach: an agent in that namespace alone, and an agent of a
// whole cluster, in any namespace.
func TestHypotheses(t *testing.T) {
	inABC := mustProperties(t, Property{Name: namespace, Value: "abc"}, Property{Name: scoped, Value: true})
	anywhere := mustProperties(t, Property{Name: scoped, Value: false})
	for _, test := range []struct {
		expressions   string
		inABC, anyone bool
	}{
		{"ns == abc", true, true},
		{"ns == openhorizon-agent", false, true},
		{"ns != abc", false, true},
		{"ns == xyz OR purpose == t", true, true},
		{"Scoped == false AND ns == xyz", false, true},
		{"Scoped == false", false, true},
		{"Scoped == true", true, false},
		{"purpose == nope OR ns == xyz", true, true},
		{`ns in "abc,xyz"`, true, true},
		{`ns in "qq,xyz"`, false, true},
		{"ns == abc; ns == xyz", false, false},
		{`ns in "abc,xyz"; ns in "def"`, false, false},
		{`ns in "abc,xyz"; ns != xyz`, true, true},
		{`ns in "abc"; ns != abc`, false, false},
		{`ns == "a b"`, false, false},
		{"ns > 3", false, false},
		{"Scoped == false AND Scoped == true", false, false},
		{"Scoped == true; ns == xyz", false, false},
		{"", true, true},
	} {
		text := strings.NewReplacer("ns", namespace, "Scoped", scoped).Replace(test.expressions)
		constraints := mustParse(t, strings.Split(text, ";")...)
		if found := constraints.Possible(inABC, namespace); found != test.inABC {
			t.Errorf("%q: expected %v for an agent in the namespace, found %v", test.expressions, test.inABC, found)
		}
		if found := constraints.Possible(anywhere, namespace); found != test.anyone {
			t.Errorf("%q: expected %v for an agent of a cluster, found %v", test.expressions, test.anyone, found)
		}
	}
}

func TestPossible(t *testing.T) {
	for _, test := range []struct {
		expression string
		possible   bool
	}{
		{"a == 1 AND a == 2", true}, // the text "1,2"
		{"a < 1 AND a > 2", false},
		{"a < 1 AND a >= 1", false},
		{"a <= 1 AND a >= 1", true},
		{"a <= 1 AND a >= 1 AND a != 1", false},
		{"a =< 1 AND a => 2", false},
		{"a > 1 AND a == 1", false},
		{"a > 1 AND a == true", false},
		{"a > 1 AND (a == true OR a == 2)", true},
		{"(a > 1 OR b > 1) AND (a < 1 AND b < 1)", false},
		{"(a > 1 OR b > 1) AND (a < 1 OR b < 1)", true},
		{"a > Infinity", false},
		{"a < NaN", false},
		{"a == b AND a != b", true}, // the text "b,c"
		{`a in "b,c" AND a == d`, true},
		{`a in "b,c" AND a > 1`, false},
		{"a in [1.0.0,2.0.0) AND a in [2.0.0,3.0.0)", true}, // a list
		{"a in [1.0.0,2.0.0) AND a > 1", false},
		{"a == 1 AND ()", true},
		{"(a > 1 AND a < 1) OR ", true},
	} {
		if found := mustParse(t, test.expression).Possible(nil); found != test.possible {
			t.Errorf("%s: expected %v, found %v", test.expression, test.possible, found)
		}
	}
	var constraints *Constraints
	if !constraints.Possible(nil) {
		t.Error("no constraints are not possible")
	}
}

// TestPossibleIsBounded has more alternatives than can be tried, and longer lists than can be compared.
func TestPossibleIsBounded(t *testing.T) {
	var alternatives []string
	for i := range 30 {
		alternatives = append(alternatives, "(a"+strconv.Itoa(i)+" == 1 OR b == 2)")
	}
	all := strings.Join(alternatives, " AND ")
	if !mustParse(t, all, "c > 1 OR c > 2", "c < 1 OR c < 0").Possible(nil) {
		t.Error("expected that a search that takes too long says yes")
	}
	if mustParse(t, all, "(c > 1 AND d == 1) AND c < 1").Possible(nil) {
		t.Error("expected that what is compared anyway is looked at before alternatives")
	}
	list := `l in "` + strings.TrimSuffix(strings.Repeat("a,", 2000), ",") + `"`
	lists := make([]string, 60)
	for i := range lists {
		lists[i] = list
	}
	if constraints := mustParse(t, lists...); !constraints.Possible(nil) || len(constraints.Requires()) != 1 {
		t.Error("expected that long lists are possible, and are one branch")
	}
}

// TestWorlds computes Possible and Requires for random expressions, and evaluates these in all worlds of two properties: no world may satisfy an
// impossible expression, and each world that satisfies an expression must be allowed by a branch.
func TestWorlds(t *testing.T) {
	worlds := [][]Property{}
	one := []Property{{}}
	one = append(one, someValues...)
	for _, a := range one {
		for _, b := range one {
			var world []Property
			for i, property := range []Property{a, b} {
				if property.Value != nil {
					property.Name = []string{"a", "b"}[i]
					world = append(world, property)
				}
			}
			worlds = append(worlds, world)
		}
	}
	checked := make([]*Properties, len(worlds))
	for i, world := range worlds {
		checked[i] = mustProperties(t, world...)
	}
	r := rand.New(rand.NewPCG(3, 4))
	tried, impossible, ruledOut, satisfying := 0, 0, 0, 0
	for tried < 1200 {
		text := randomExpression(r, 2) + " AND (" + randomExpression(r, 1) + ")"
		constraints, err := Parse([]string{text})
		if err != nil {
			continue
		}
		tried++
		possible, branches := constraints.Possible(nil), constraints.Requires()
		// Whether it is possible with one property fixed to its value in a world, computed once for each value.
		fixed := map[string]bool{}
		possibleWith := func(properties []Property, single bool) bool {
			key := strconv.FormatBool(single)
			for _, property := range properties {
				key += property.Name + describe(property.Value) + string(property.Type) + ";"
			}
			answer, known := fixed[key]
			if !known {
				answer = constraints.Possible(mustProperties(t, properties...), map[bool][]string{true: {"b"}}[single]...)
				fixed[key] = answer
			}
			return answer
		}
		if !possible {
			impossible++
		}
		for i, properties := range checked {
			satisfied := constraints.Satisfied(properties)
			allowed := false
			for _, branch := range branches {
				allowed = allowed || branch.Allows(properties)
			}
			if !allowed {
				ruledOut++
			}
			if !satisfied {
				continue
			}
			satisfying++
			if !possible || !allowed {
				t.Fatalf("%q is satisfied by %+v: possible is %v, and of branches %+v allowed are %v", text, worlds[i], possible, branches, allowed)
			}
			for _, property := range worlds[i] {
				if !possibleWith([]Property{property}, false) {
					t.Fatalf("%q is satisfied by %+v, and not possible with %+v", text, worlds[i], property)
				}
			}
			if !possibleWith(worlds[i], false) {
				t.Fatalf("%q is satisfied by %+v, and not possible with that", text, worlds[i])
			}
			last := len(worlds[i]) - 1
			if last < 0 || worlds[i][last].Name != "b" {
				continue
			}
			word, isText := worlds[i][last].Value.(string)
			plain := worlds[i][last].Type == Untyped || worlds[i][last].Type == String
			if isText && plain && isSingle(word) && !possibleWith(worlds[i][:last], true) {
				t.Fatalf("%q is satisfied by %+v, and not possible with a single word for b", text, worlds[i])
			}
		}
	}
	t.Logf("of %d, %d are impossible; of %d worlds, %d were ruled out, and %d satisfy", tried, impossible, tried*len(worlds), ruledOut, satisfying)
	if impossible < 20 || ruledOut < tried*len(worlds)/3 || satisfying < 10000 {
		t.Error("expected more of these")
	}
}
