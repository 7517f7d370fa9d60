// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/clusterhub/clusterhub/hack/gen/metrics"
)

// metric is a metric in the documentation or in the code.
type metric struct{ kind, labels string }

var (
	toldMetric = regexp.MustCompile("(?m)^\\| `((?:clusterhub|scheduling|hub_agent|hub_apiserver|leader)_[a-z_]+)` \\| ([a-z]+) \\|(.*?)\\|.*\\|$")
	oneLabel   = regexp.MustCompile("`([a-z_]+)`")
)

// TestDocs_NameEveryMetric: those that the programs have, and no others, with their types and labels.
func TestDocs_NameEveryMetric(t *testing.T) {
	all, err := metrics.Made(root)
	if err != nil {
		t.Error(err)
	}
	made, told := map[string]metric{}, toldMetrics(t)
	for _, m := range all {
		made[m.Name] = metric{m.Kind, fmt.Sprint(m.Labels)}
	}
	if len(made) < 20 {
		t.Fatalf("the code has only %d metrics", len(made))
	}
	for name, m := range told {
		if in, ok := made[name]; !ok {
			t.Errorf("docs/metrics.md has %s, which no program has", name)
		} else if in != m {
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
