// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"io"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// explainCluster prints the steps that a cluster passed, down to the one that dropped it. The placement may be nil.
func explainCluster(out io.Writer, p *v1beta1.Placement, e *v1beta1.PlacementExplanation) error {
	l, c := &kit.Lines{Out: out}, &e.Status.Clusters[0]
	problems(l, e)
	if c.Chosen {
		l.Printf("Cluster %s is chosen.", c.ClusterName)
	} else {
		l.Printf("Cluster %s is not chosen: %s.", c.ClusterName, sentence(c.Message))
	}
	if c.FilteredBy == "" && !c.Chosen || e.Status.Problem != "" && len(c.Scores) == 0 && c.FilteredBy == "" {
		return l.Err // the problem says why, and nothing else was computed
	}
	l.Printf("")
	for _, step := range diagnosis.PlacementSteps(p, c) {
		mark := "passed"
		switch {
		case step.Fell:
			mark = "FELL OUT"
		case step.Only:
			mark = "-"
		}
		l.Printf("  %-26s  %-8s  %s", step.Name, mark, step.Says)
		if step.Fell {
			return l.Err
		}
	}
	return l.Err
}

// sentence returns a message that starts with a lower-case letter, for use after a colon.
func sentence(message string) string {
	if message == "" {
		return message
	}
	return strings.ToLower(message[:1]) + message[1:]
}
