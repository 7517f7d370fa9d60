// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	internal "github.com/clusterhub/clusterhub/pkg/apis/edge"
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

func rows(t *testing.T, file string, most int) [][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var table [][]string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "#") {
			table = append(table, strings.Split(line, "\t"))
		}
	}
	if len(table) != most+1 {
		t.Fatalf("%s has %d rows, and should have %d", file, len(table)-1, most)
	}
	return table[1:]
}

// The rows of Open Horizon's rule of namespaces.
func TestAnswer_NamespaceMatrix(t *testing.T) {
	for _, row := range rows(t, "../testdata/namespace-matrix.tsv", 72) {
		for i := range row {
			row[i] = strings.ToLower(row[i])
		}
		scope := edge.ClusterScoped
		if row[0] == "true" {
			scope = edge.NamespaceScoped
		}
		s := service("web", "1.0.0")
		if row[4] != "" {
			s.Contents.Namespaces = []string{row[4]}
		}
		q := &Question{Name: "p", Services: []edge.Service{s}, Nodes: read(node("n", scope, edge.LegacyNamespace(row[1])))}
		if row[2] == "" {
			q.Policy = policy(row[3])
		} else {
			q.Pattern = pattern(row[3], "web")
		}
		status := answer(t, q)
		n := status.Nodes[0]
		if want := row[5] == "true"; n.Deployable != want || status.Deployable != want || want && n.Services[0].TargetNamespace != row[6] || want == (n.Reason != "") {
			t.Errorf("%v: got %v", row, lines(status))
		}
	}
}

// The rows of Open Horizon's constraints, as those of a policy.
func TestAnswer_ConstraintCases(t *testing.T) {
	asked := 0
	for _, row := range rows(t, "../../constraint/testdata/edge-constraint-cases.tsv", 123) {
		var expressions []string
		var properties []constraint.Property
		if err := errors.Join(json.Unmarshal([]byte(row[1]), &expressions), json.Unmarshal([]byte(row[2]), &properties)); err != nil {
			t.Fatal(err)
		}
		// Built-in properties cannot be written: the matrix has them.
		if slices.ContainsFunc(properties, func(p constraint.Property) bool { return internal.ReadOnly(p.Name) }) {
			continue
		}
		asked++
		n := node("n", edge.ClusterScoped, "agent")
		n.Policy.Properties = properties
		p := policy("", expressions...)
		status := answer(t, &Question{Policy: p, Services: []edge.Service{service("web", "1.0.0")}, Nodes: read(n)})
		want := map[bool]string{true: "", false: string(edge.PolicyConstraint)}[row[4] == "true"]
		if row[3] != "true" {
			want = string(Unreadable)
		}
		if got := status.Nodes[0]; got.Reason != want || got.Deployable != (got.Reason == "") {
			t.Errorf("%v: got %v (%s), want %q", row, lines(status), status.Nodes[0].Message, want)
		}
	}
	if asked < 100 {
		t.Errorf("only %d rows are asked", asked)
	}
}

// An answer stays within its limits, whatever the question is.
func TestAnswer_Bounds(t *testing.T) {
	long := strings.Repeat("x", 4000)
	p := &api.DeploymentPolicySpec{Service: api.PolicyService{Name: strings.Repeat("w", 253)}}
	for i := range 32 {
		p.Service.ServiceVersions = append(p.Service.ServiceVersions, api.ServiceVersion{Version: strings.Repeat("1", 30+i)})
	}
	p.Constraints = []string{"a == " + long}
	var services []edge.Service
	for _, v := range p.Service.ServiceVersions {
		s := service(p.Service.Name, v.Version)
		s.Policy.Constraints = []string{"b == " + long}
		services = append(services, s)
	}
	status := answer(t, &Question{Policy: p, Services: services, Nodes: read(node("n", edge.ClusterScoped, "agent"))})
	n := status.Nodes[0]
	if n.Deployable || len([]rune(n.Message)) > 1024 || len([]rune(n.Services[0].Message)) > 4096 || len(n.Services[0].Message) < 2000 {
		t.Errorf("got %v, with %d and %d characters", n.Reason, len([]rune(n.Message)), len([]rune(n.Services[0].Message)))
	}
}
