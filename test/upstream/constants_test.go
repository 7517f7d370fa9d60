// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// constants are the exported ones of a package that are texts, by name.
func constants(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s (%v)", dir, err)
	}
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !spec.Names[0].IsExported() {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				found[spec.Names[0].Name] = literal.Value
			}
			return true
		})
	}
	return found
}

func dirOf(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// A program that is moved from their types to ours finds the same names with the same values.
func TestConstants_MatchUpstream(t *testing.T) {
	theirs, ours := dirOf(t, "open-cluster-management.io/api"), dirOf(t, "github.com/clusterhub/clusterhub")
	// What is asked for by name, so that the test does not pass because nothing is compared.
	wanted := map[string][]string{
		"cluster/v1": nil, "cluster/v1beta2": nil, "cluster/v1alpha1": nil, "work/v1alpha1": {"ReasonAsExpected"},
		"cluster/v1beta1": {"PlacementSortByClusterName", "PlacementSortByScore", "PlacementLabel", "DecisionGroupIndexLabel", "DecisionGroupNameLabel"},
		"operator/v1": {"InstallModeSingletonHosted", "ConditionReadyToApply", "ConditionHubConnectionDegraded", "ReasonKlusterletPrepareFailed",
			"ConditionClusterManagerApplied", "ReasonUpToDate", "AwsIrsaAuthType", "ClusterAnnotationsKeyPrefix", "ResourceQosClassDefault"},
		"work/v1": {"WorkApplied", "WorkAvailable", "ManifestWorkFinalizer", "UpdateStrategyTypeServerSideApply"},
	}
	for folder, names := range wanted {
		their, our := constants(t, filepath.Join(theirs, folder)), constants(t, filepath.Join(ours, "pkg/apis", folder))
		for name, value := range our {
			if other, known := their[name]; known && other != value {
				t.Errorf("%s.%s is %s, and upstream's is %s", folder, name, value, other)
			}
		}
		for _, name := range names {
			if our[name] == "" || their[name] == "" {
				t.Errorf("%s.%s: %q, and upstream's %q", folder, name, our[name], their[name])
			}
		}
	}
}
