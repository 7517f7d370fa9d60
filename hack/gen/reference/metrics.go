// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/hack/gen/metrics"
)

// programs have the metrics of the folders that begin so; the first that fits is taken.
var programs = []struct{ folder, title string }{
	{"pkg/controllers/", "hub-controller-manager"}, {"pkg/agent/", "hub-agent"}, {"pkg/clusterprovider/", "Cluster providers"}, {"pkg/operator/", "hub-operator"},
	{"pkg/", "hub-apiserver"},
}

// metricsPage has the metrics of ours, as a scrape tells of them.
func metricsPage(root string) (string, error) {
	all, err := metrics.Made(root)
	if err != nil {
		return "", err
	}
	rows := map[string]string{}
	for _, m := range all {
		for _, p := range programs {
			if strings.HasPrefix(m.Folder, p.folder) {
				rows[p.title] += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, m.Kind, codes(m.Labels), oneLine(m.Help))
				break
			}
		}
	}
	var b strings.Builder
	b.WriteString("The metrics of ours, with the text that each scrape has of them. What they are worth, and alerts, are in [Metrics](../metrics.md).\n")
	for i := range programs {
		p := programs[(i+len(programs)-1)%len(programs)] // hub-apiserver first
		if rows[p.title] != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | |\n|---|---|---|---|\n%s", p.title, rows[p.title])
		}
	}
	return b.String(), nil
}
