// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutant is an alert with one mistake in it.
type mutant struct {
	what string
	rule rule
}

var (
	// tokens matches the parts of an expression that mutants change. It matches offsets so that their numbers remain unchanged.
	tokens      = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|offset \w+|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9]+(?:\.[0-9]+)?|[<>]=?|==|!=`)
	matchers    = regexp.MustCompile(`(\w+)(=~|!~|!=|=)("(?:\\.|[^"\\])*")`)
	number      = regexp.MustCompile(`^[0-9.]+$`)
	comparisons = map[string]string{">": "<", ">=": "<", "<": ">", "<=": ">", "==": "!=", "!=": "=="}
)

// mutants are the mistakes that can be made in an alert: another number, comparison, label, window or time.
func mutants(t *testing.T, alert rule) (all []mutant) {
	t.Helper()
	lasts, err := time.ParseDuration(alert.For)
	if err != nil {
		t.Fatal(err)
	}
	// Rules are evaluated each minute.
	for _, other := range []time.Duration{2 * lasts, (lasts / 2).Truncate(time.Minute)} {
		changed := alert
		changed.For = other.String()
		all = append(all, mutant{"for " + changed.For, changed})
	}
	changed := alert
	changed.Labels = map[string]string{"severity": map[string]string{"critical": "warning", "warning": "critical"}[alert.Labels["severity"]]}
	all = append(all, mutant{"severity " + changed.Labels["severity"], changed})

	for _, at := range tokens.FindAllStringIndex(alert.Expr, -1) {
		token := alert.Expr[at[0]:at[1]]
		var others []string
		switch value, err := strconv.ParseFloat(token, 64); {
		case strings.HasPrefix(token, "{"):
			others = selectorsLike(token)
		case strings.HasPrefix(token, "["):
			others = windowsLike(t, token)
		case number.MatchString(token) && err == nil && value != 0:
			others = []string{fmt.Sprint(2 * value), fmt.Sprint(value / 2)}
		case comparisons[token] != "":
			others = []string{comparisons[token]}
		}
		for _, other := range others {
			changed := alert
			changed.Expr = alert.Expr[:at[0]] + other + alert.Expr[at[1]:]
			all = append(all, mutant{changed.Expr, changed})
		}
	}
	return all
}

// windowsLike are those of half and of twice the time.
func windowsLike(t *testing.T, window string) []string {
	t.Helper()
	lasts, err := time.ParseDuration(strings.Trim(window, "[]"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{fmt.Sprintf("[%ds]", int((2 * lasts).Seconds())), fmt.Sprintf("[%ds]", int((lasts / 2).Seconds()))}
}

// selectorsLike are those without one matcher of a selector, and those with a value that nothing has.
func selectorsLike(selector string) (others []string) {
	all := matchers.FindAllStringSubmatch(selector, -1)
	for i, m := range all {
		var left, wrong []string
		for j, other := range all {
			if j != i {
				left = append(left, other[0])
				wrong = append(wrong, other[0])
			}
		}
		wrong = append(wrong, m[1]+m[2]+`"none"`)
		others = append(others, "{"+strings.Join(left, ",")+"}", "{"+strings.Join(wrong, ",")+"}")
	}
	return others
}

// TestAlerts_MutationsFail: there is a case for each mistake in the threshold, the comparison, the labels, the windows, the severity and the time of each alert.
// Each run has one mistake in each of them.
func TestAlerts_MutationsFail(t *testing.T) {
	wrong, rounds, total := map[string][]mutant{}, 0, 0
	for _, alert := range alerts(t) {
		wrong[alert.Alert] = mutants(t, alert)
		rounds, total = max(rounds, len(wrong[alert.Alert])), total+len(wrong[alert.Alert])
	}
	if total < 150 {
		t.Errorf("there are only %d mistakes", total)
	}
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			changed := groups(t)
			for _, g := range changed {
				for i, alert := range g.Rules {
					if of := wrong[alert.Alert]; round < len(of) {
						g.Rules[i] = of[round].rule
					}
				}
			}
			out, err := promtool(t, changed, "test", "rules", "edges.yaml")
			if err == nil || !strings.Contains(out, "ALERTS{") {
				t.Fatalf("%v\n%s", err, out)
			}
			for alert, of := range wrong {
				if round < len(of) && !strings.Contains(out, fmt.Sprintf(`ALERTS{alertname=\"%s\"`, alert)) {
					t.Errorf("no case of testdata/edges.yaml fails if %s has %s", alert, of[round].what)
				}
			}
		})
	}
}

func TestMutants(t *testing.T) {
	var got []string
	for _, m := range mutants(t, rule{Alert: "A", Expr: `m{a="1",b!="2"} offset 5m > 4 and n[10m] == 0`, For: "1m", Labels: map[string]string{"severity": "warning"}}) {
		got = append(got, m.what)
	}
	want := []string{"for 2m0s", "for 0s", "severity critical",
		`m{b!="2"} offset 5m > 4 and n[10m] == 0`, `m{b!="2",a="none"} offset 5m > 4 and n[10m] == 0`,
		`m{a="1"} offset 5m > 4 and n[10m] == 0`, `m{a="1",b!="none"} offset 5m > 4 and n[10m] == 0`,
		`m{a="1",b!="2"} offset 5m < 4 and n[10m] == 0`, `m{a="1",b!="2"} offset 5m > 8 and n[10m] == 0`,
		`m{a="1",b!="2"} offset 5m > 2 and n[10m] == 0`, `m{a="1",b!="2"} offset 5m > 4 and n[1200s] == 0`,
		`m{a="1",b!="2"} offset 5m > 4 and n[300s] == 0`, `m{a="1",b!="2"} offset 5m > 4 and n[10m] != 0`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
