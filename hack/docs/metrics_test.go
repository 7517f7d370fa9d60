// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metric is what the documentation and the code say of one.
type metric struct {
	kind   string // counter, gauge or histogram; empty in the code where a description alone is made
	labels string
}

var (
	ours       = `(?:clusterhub|scheduling|hub_agent|hub_apiserver)_[a-z_]+`
	madeMetric = regexp.MustCompile(`"((?:clusterhub|scheduling)_[a-z_]+)"`)
	toldMetric = regexp.MustCompile("(?m)^\\| `(" + ours + ")` \\| ([a-z]+) \\|(.*?)\\|.*\\|$")
	oneLabel   = regexp.MustCompile("`([a-z_]+)`")
	constructs = regexp.MustCompile(`^New(Desc|Counter|Gauge|Histogram)(Vec|Func)?$`)
)

// TestDocs_TellEveryMetric: those that the programs have, and no others, with their types and labels.
func TestDocs_TellEveryMetric(t *testing.T) {
	made, told := madeMetrics(t), toldMetrics(t)
	if len(made) < 20 {
		t.Fatalf("the code has only %d metrics", len(made))
	}
	for name, m := range told {
		if in, ok := made[name]; !ok {
			t.Errorf("docs/metrics.md has %s, which no program has", name)
		} else if in.labels != m.labels || in.kind != "" && in.kind != m.kind {
			t.Errorf("docs/metrics.md says that %s is a %s with the labels %q, and the code that it is a %s with %q", name, m.kind, m.labels, in.kind, in.labels)
		}
	}
	for name := range made {
		if _, ok := told[name]; !ok {
			t.Errorf("docs/metrics.md has no row | `%s` | type | labels | … |", name)
		}
	}
}

func toldMetrics(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]metric{}
	for _, row := range toldMetric.FindAllStringSubmatch(string(text), -1) {
		var labels []string
		for _, l := range oneLabel.FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		told[row[1]] = metric{row[2], fmt.Sprint(labels)}
	}
	return told
}

func madeMetrics(t *testing.T) map[string]metric {
	t.Helper()
	made, named := map[string]metric{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "metrics\"") && !strings.Contains(string(text), "client_golang/prometheus\"") {
			return err
		}
		for _, found := range madeMetric.FindAllStringSubmatch(string(text), -1) {
			named[found[1]] = true
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, m := metricOf(call); name != "" {
					made[name] = m
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range named {
		if _, ok := made[name]; !ok {
			t.Errorf("%s is made in a way that this test does not know: by none of prometheus.New…", name)
		}
	}
	return made
}

// metricOf is what a call such as prometheus.NewCounterVec(prometheus.CounterOpts{Name: …}, labels) makes.
func metricOf(call *ast.CallExpr) (name string, m metric) {
	construct := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		construct = f.Sel.Name
	case *ast.Ident:
		construct = f.Name
	}
	parts := constructs.FindStringSubmatch(construct)
	if parts == nil || len(call.Args) == 0 {
		return "", metric{}
	}
	if parts[1] == "Desc" {
		if len(call.Args) < 3 {
			return "", metric{}
		}
		return text(call.Args[0]), metric{"", labels(call.Args[2])}
	}
	m = metric{strings.ToLower(parts[1]), "[]"}
	if len(call.Args) > 1 {
		m.labels = labels(call.Args[1])
	}
	return nameIn(call.Args[0]), m
}

// nameIn is the name in options, or the first argument of the function that makes them.
func nameIn(options ast.Expr) string {
	if unary, ok := options.(*ast.UnaryExpr); ok {
		options = unary.X
	}
	switch o := options.(type) {
	case *ast.CallExpr:
		if len(o.Args) > 0 {
			return text(o.Args[0])
		}
	case *ast.CompositeLit:
		var parts [3]string
		for _, element := range o.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if at := slices.Index([]string{"Namespace", "Subsystem", "Name"}, fmt.Sprint(pair.Key)); at >= 0 {
					parts[at] = text(pair.Value)
				}
			}
		}
		return strings.Trim(strings.ReplaceAll(strings.Join(parts[:], "_"), "__", "_"), "_")
	}
	return ""
}

func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		s, _ := strconv.Unquote(literal.Value)
		return s
	}
	return ""
}

func labels(e ast.Expr) string {
	var all []string
	if list, ok := e.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			all = append(all, text(element))
		}
	}
	return fmt.Sprint(all)
}
