// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks what is for Prometheus: that each alert fires where it is to fire and nowhere else, that it has a runbook, and that
// there is each metric that it names.
package monitoring

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../../.."

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// groups returns the rule groups of the PrometheusRule.
func groups(t *testing.T) (groups []group) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "artifacts", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object.Spec.Groups
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	for _, g := range groups(t) {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("there are only %d alerts", len(all))
	}
	return all
}

// promtool runs one of its commands on rules, with the cases beside them.
func promtool(t *testing.T, rules []group, args ...string) (string, error) {
	t.Helper()
	tool, err := filepath.Abs(filepath.Join(root, "_output", "debian", "usr", "bin", "promtool"))
	if err == nil {
		_, err = os.Stat(tool)
	}
	if err != nil {
		tool, err = exec.LookPath("promtool")
		if err != nil {
			t.Skip("there is no promtool: run hack/debian.sh --unpack prometheus, or install Prometheus")
		}
	}
	dir := t.TempDir()
	text, err := yaml.Marshal(map[string]any{"groups": rules})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"rules.yaml": text}
	for _, name := range []string{"alerts.yaml", "edges.yaml"} {
		files[name], err = os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	err = cmd.Run()
	return out.String(), err
}

func TestAlerts_FireAtThresholds(t *testing.T) {
	if out, err := promtool(t, groups(t), "check", "rules", "rules.yaml"); err != nil || strings.Contains(out, "FAILED") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := promtool(t, groups(t), "test", "rules", "alerts.yaml", "edges.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Of each alert there is a case that fails if the alert never fires, and one that fails if it always does.
func TestAlerts_EachFaultHasCase(t *testing.T) {
	for fault, broken := range map[string]rule{"never fires": {Expr: "vector(0) > 1"}, "always fires": {Expr: "vector(1)"}} {
		changed := groups(t)
		for _, g := range changed {
			for i := range g.Rules {
				g.Rules[i] = rule{Alert: g.Rules[i].Alert, Expr: broken.Expr, Labels: g.Rules[i].Labels}
			}
		}
		out, err := promtool(t, changed, "test", "rules", "alerts.yaml", "edges.yaml")
		if err == nil {
			t.Errorf("all cases pass with alerts of which each %s", fault)
		}
		for _, alert := range alerts(t) {
			if !strings.Contains(out, fmt.Sprintf(`ALERTS{alertname=\"%s\"`, alert.Alert)) {
				t.Errorf("no case in testdata fails if %s %s", alert.Alert, fault)
			}
		}
	}
}

func TestAlerts_HaveDescriptions(t *testing.T) {
	headings := []string{"## Meaning", "## Impact", "## How to find out", "## What to do"}
	want := map[string]bool{}
	for _, alert := range alerts(t) {
		file := "docs/runbooks/" + alert.Alert + ".md"
		want[filepath.Base(file)] = true
		switch {
		case !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]):
			t.Errorf("%s has the severity %q, and not critical or warning", alert.Alert, alert.Labels["severity"])
		case alert.Annotations["summary"] == "" || alert.Annotations["description"] == "":
			t.Errorf("%s has no summary or no description", alert.Alert)
		case alert.Annotations["runbook_url"] != file:
			t.Errorf("%s has the runbook %q, and not %s", alert.Alert, alert.Annotations["runbook_url"], file)
		case alert.For == "":
			t.Errorf("%s fires at once: a restart would, too", alert.Alert)
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(string(text), "# "+alert.Alert+"\n") {
			t.Errorf("%s does not begin with the name of the alert", file)
		}
		for _, heading := range headings {
			if _, after, ok := strings.Cut("\n"+string(text), "\n"+heading+"\n\n"); !ok || strings.HasPrefix(after, "#") || after == "" {
				t.Errorf("%s has nothing below %q", file, heading)
			}
		}
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "runbooks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !want[file.Name()] {
			t.Errorf("docs/runbooks/%s is of no alert", file.Name())
		}
	}
}

var (
	quoted    = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)
	selectors = regexp.MustCompile(`\{[^}]*\}|\b(?:by|without|on|ignoring|group_left|group_right) ?\([^)]*\)|\[[^\]]*\]|offset \w+`)
	names     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	told      = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metricsIn are the metrics that an expression names.
func metricsIn(expr string) (found []string) {
	expr = selectors.ReplaceAllString(quoted.ReplaceAllString(expr, `""`), " ")
	for _, name := range names.FindAllString(expr, -1) {
		if !strings.HasSuffix(name, "(") && !slices.Contains([]string{"and", "or", "unless", "bool", "by", "without", "vector"}, name) {
			found = append(found, name)
		}
	}
	return found
}

// known are the metrics that there are: ours, and those of libraries that a real hub has been seen to serve (test/e2e/monitoring).
func known(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range told.FindAllStringSubmatch(string(text), -1) {
		all[name[1]] = true
	}
	text, err = os.ReadFile(filepath.Join(root, "artifacts", "monitoring", "library-metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != "#" {
			all[name] = true
		}
	}
	return all
}

// dashboard are the queries of the dashboard, by their panels.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "artifacts", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := yaml.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], target.Expr)
		}
	}
	if len(queries) < 15 {
		t.Fatalf("there are only %d panels", len(queries))
	}
	return queries
}

func TestDashboard_MetricsExist(t *testing.T) {
	have := known(t)
	for panel, queries := range dashboard(t) {
		for _, query := range queries {
			for _, name := range metricsIn(query) {
				if !have[name] && !have[suffix.ReplaceAllString(name, "")] {
					t.Errorf("the panel %q names %s, which is neither in docs/metrics.md nor in artifacts/monitoring/library-metrics.txt", panel, name)
				}
			}
		}
	}
}

func TestAlerts_MetricsExist(t *testing.T) {
	have := known(t)
	if got := metricsIn(`sum by (le) (rate(a_bucket{b="c"}[5m])) / on (x) d offset 5m > 2 and absent(e) or time() - f == 1`); !slices.Equal(got, []string{"a_bucket", "d", "e", "f"}) {
		t.Fatalf("found %q", got)
	}
	for _, alert := range alerts(t) {
		found := metricsIn(alert.Expr)
		if len(found) == 0 {
			t.Errorf("%s names no metric", alert.Alert)
		}
		for _, name := range found {
			if !have[name] && !have[suffix.ReplaceAllString(name, "")] {
				t.Errorf("%s names %s, which is neither in docs/metrics.md nor in artifacts/monitoring/library-metrics.txt", alert.Alert, name)
			}
		}
	}
}
