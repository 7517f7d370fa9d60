// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMetrics_ReadsAllForms in which metrics are made, and says which it cannot read: one that is not read would be in no reference.
func TestMetrics_ReadsAllForms(t *testing.T) {
	for name, test := range map[string]struct{ text, want, refused string }{
		"a vector":    {`var a = metrics.NewCounterVec(&metrics.CounterOpts{Name: "clusterhub_rain_total", Help: "It rains."}, []string{"cloud"})`, "{clusterhub_rain_total counter [cloud] It rains. pkg/x}", ""},
		"in parts":    {`var a = metrics.NewGauge(&metrics.GaugeOpts{Namespace: "hub_agent", Name: "sun", Help: "It " + "shines."})`, "{hub_agent_sun gauge [] It shines. pkg/x}", ""},
		"a tally":     {"var d = prometheus.NewDesc(\"clusterhub_drops\", \"Drops.\", []string{\"size\"}, nil)\n\nvar t = kit.NewTally(d, nil)", "{clusterhub_drops gauge [size] Drops. pkg/x}", ""},
		"by moments":  {"var d = prometheus.NewDesc(\"clusterhub_drops\", \"Drops.\", nil, nil)\n\nvar t = m.Histogram(d, nil)", "{clusterhub_drops histogram [] Drops. pkg/x}", ""},
		"no help":     {`var a = metrics.NewGauge(&metrics.GaugeOpts{Name: "clusterhub_sun"})`, "", "clusterhub_sun has the kind \"gauge\" and the help \"\""},
		"no kind":     {`var d = prometheus.NewDesc("clusterhub_drops", "Drops.", nil, nil)`, "", "clusterhub_drops has the kind \"\""},
		"another way": {`var a = weather("clusterhub_wind")`, "", "clusterhub_wind is made in a way that is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "pkg", "x", "x.go")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("package x\n\nimport \"k8s.io/component-base/metrics\"\n\n"+test.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := Made(root)
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got the error %v, want one with %q", err, test.refused)
			case test.refused == "" && (err != nil || fmt.Sprint(all) != "["+test.want+"]"):
				t.Errorf("got %v and the error %v, want %s", all, err, test.want)
			}
		})
	}
}
