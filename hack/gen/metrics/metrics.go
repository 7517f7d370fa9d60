// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics finds the metrics of ours in the code: for the reference, and for the test that the documentation explains each of them.
package metrics

import (
	"errors"
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
)

// Metric is a metric of a program.
type Metric struct {
	Name string
	// Kind is counter, gauge or histogram.
	Kind   string
	Labels []string
	// Help is the help text of the metric.
	Help string
	// Folder is the folder of the code that creates it.
	Folder string
}

var (
	ours       = regexp.MustCompile(`"((?:clusterhub|scheduling)_[a-z_]+)"`)
	constructs = regexp.MustCompile(`^New(Desc|Counter|Gauge|Histogram)(Vec|Func)?$`)
)

// Made are all metrics in pkg, by their names. One that is made in a way that cannot be read is an error.
func Made(root string) ([]Metric, error) {
	var all []Metric
	var problems []error
	folders := map[string]*folder{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(source), "metrics\"") && !strings.Contains(string(source), "client_golang/prometheus\"") {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		f := folders[name]
		if f == nil {
			f = &folder{made: map[string]Metric{}, described: map[string]string{}, kinds: map[string]string{}, named: map[string]bool{}}
			folders[name] = f
		}
		return f.read(path, source)
	})
	if err != nil {
		return nil, err
	}
	for name, f := range folders {
		for variable, metric := range f.described {
			m := f.made[metric]
			m.Kind = f.kinds[variable]
			f.made[metric] = m
		}
		for metric := range f.named {
			if _, ok := f.made[metric]; !ok {
				problems = append(problems, fmt.Errorf("%s: %s is made in a way that is not known here: by none of prometheus.New…", name, metric))
			}
		}
		for _, m := range f.made {
			m.Folder = filepath.ToSlash(name)
			if m.Kind == "" || m.Help == "" {
				problems = append(problems, fmt.Errorf("%s: %s has the kind %q and the help %q: expected text in the options, and a description that is a variable of its own and given to MustNewConst…, kit.NewTally or Histogram", name, m.Name, m.Kind, m.Help))
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(problems...)
}

// folder has the metrics of one package.
type folder struct {
	made map[string]Metric
	// described are the metrics by the variables of their descriptions, and kinds what these are used for.
	described, kinds map[string]string
	// named are the texts that look like the name of a metric.
	named map[string]bool
}

func (f *folder) read(path string, source []byte) error {
	for _, found := range ours.FindAllSubmatch(source, -1) {
		f.named[string(found[1])] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				f.describe(n.Names[i].Name, value)
			}
		case *ast.CallExpr:
			if m, ok := metricOf(n); ok {
				f.made[m.Name] = m
			}
			if len(n.Args) > 1 {
				if variable, ok := n.Args[0].(*ast.Ident); ok && usedFor(n) != "" {
					f.kinds[variable.Name] = usedFor(n)
				}
			}
		}
		return true
	})
	return nil
}

func (f *folder) describe(variable string, value ast.Expr) {
	if call, ok := value.(*ast.CallExpr); ok && called(call) == "NewDesc" {
		if m, ok := metricOf(call); ok {
			f.described[variable] = m.Name
		}
	}
}

// usedFor is the kind of the metrics that a call makes with a description: one of the library, or of the tallies and moments of pkg/kit.
func usedFor(call *ast.CallExpr) string {
	switch called(call) {
	case "NewTally":
		return "gauge"
	case "Histogram", "MustNewConstHistogram":
		return "histogram"
	case "MustNewConstMetric":
		if s, ok := call.Args[1].(*ast.SelectorExpr); ok { // prometheus.GaugeValue
			return strings.ToLower(strings.TrimSuffix(s.Sel.Name, "Value"))
		}
	}
	return ""
}

// called is the name of the function of a call, without that of its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// metricOf returns the metric of a call such as prometheus.NewCounterVec(prometheus.CounterOpts{Name: …, Help: …}, labels).
func metricOf(call *ast.CallExpr) (m Metric, ok bool) {
	parts := constructs.FindStringSubmatch(called(call))
	if parts == nil || len(call.Args) == 0 {
		return m, false
	}
	if parts[1] == "Desc" {
		if len(call.Args) < 3 {
			return m, false
		}
		m = Metric{Name: text(call.Args[0]), Help: text(call.Args[1]), Labels: labels(call.Args[2])}
		return m, m.Name != ""
	}
	m.Kind = strings.ToLower(parts[1])
	if len(call.Args) > 1 {
		m.Labels = labels(call.Args[1])
	}
	m.Name, m.Help = optionsOf(call.Args[0])
	return m, m.Name != ""
}

// optionsOf are the name and the help in options, or the arguments of the function that makes them.
func optionsOf(options ast.Expr) (name, help string) {
	if unary, ok := options.(*ast.UnaryExpr); ok {
		options = unary.X
	}
	switch o := options.(type) {
	case *ast.CallExpr:
		if len(o.Args) > 1 {
			return text(o.Args[0]), text(o.Args[1])
		}
	case *ast.CompositeLit:
		var parts [4]string
		for _, element := range o.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if at := slices.Index([]string{"Namespace", "Subsystem", "Name", "Help"}, fmt.Sprint(pair.Key)); at >= 0 {
					parts[at] = text(pair.Value)
				}
			}
		}
		return strings.Trim(strings.ReplaceAll(strings.Join(parts[:3], "_"), "__", "_"), "_"), parts[3]
	}
	return "", ""
}

// text is a string, which may be one of several that are put together.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}

func labels(e ast.Expr) (all []string) {
	if list, ok := e.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			all = append(all, text(element))
		}
	}
	return all
}
