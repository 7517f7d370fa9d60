// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
)

// stateTexts are the texts of states, with those first that may need an action.
var stateTexts = []struct {
	state ClusterState
	text  string
}{
	{Failed, "failed"}, {TimeOut, "without success in time"}, {Blocked, "not allowed"}, {Writing, "being written"}, {InProgress, "in progress"},
	{Soaking, "soaking"}, {Waiting, "waiting"},
}

// maxNamed is the maximum number of clusters that are named for each state.
const maxNamed = 3

// Message returns the progress of a rollout, and what clusters wait for, for the first ones in each state.
func (p *Plan) Message() string {
	have := "clusters have"
	if len(p.Clusters) == 1 {
		have = "cluster has"
	}
	parts := []string{fmt.Sprintf("%d of %d %s succeeded", p.Counts[Succeeded]+p.Counts[Soaking], len(p.Clusters), have)}
	for _, t := range stateTexts {
		n := p.Counts[t.state]
		if n == 0 {
			continue
		}
		if t.state == Waiting && p.Held != "" {
			parts = append(parts, fmt.Sprintf("%d waiting: %s", n, p.Held))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s: %s", n, t.text, p.some(t.state, n)))
	}
	return strings.Join(parts, "; ")
}

func (p *Plan) some(state ClusterState, n int) string {
	var some []string
	for _, o := range p.Clusters {
		if o.State != state {
			continue
		}
		if len(some) == maxNamed {
			some = append(some, fmt.Sprintf("and %d more", n-maxNamed))
			break
		}
		text := o.Name
		if o.Waits != "" {
			text += " (" + o.Waits + ")"
		}
		some = append(some, text)
	}
	return strings.Join(some, ", ")
}
