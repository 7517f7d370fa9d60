// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

// isForNode reports whether a service of a pattern is for the node at all. Services for other architectures, or for another type of node, are left out,
// and nothing is missing without them.
func isForNode(d *edge.Decision) bool {
	return d.Reason != edge.ArchMismatch && d.Reason != edge.NotForClusters && d.Reason != edge.NotForDevices
}

// first returns the reason why nothing is deployed: that of the first service that is for the node and does not fit by itself, otherwise that of the
// first service.
func first(decisions []edge.Decision) edge.Reason {
	for i := range decisions {
		if d := &decisions[i]; !d.Compatible && isForNode(d) && d.Reason != edge.PartOfPattern {
			return d.Reason
		}
	}
	for i := range decisions {
		if !decisions[i].Compatible {
			return decisions[i].Reason
		}
	}
	return ""
}

// gets reports whether anything is deployed to the node, and whether everything is.
func (v *verdict) gets() (something, all bool) {
	all = true
	for i := range v.decisions {
		d := &v.decisions[i]
		something = something || d.Compatible
		all = all && (d.Compatible || !isForNode(d))
	}
	return something, something && all
}

// why returns the reason of a node to which nothing is deployed.
func (v *verdict) why() edge.Reason {
	if v.reason != "" {
		return v.reason
	}
	return cmp.Or(first(v.decisions), v.first)
}

// count counts all nodes.
func (c *checked) count(verdicts []verdict) {
	excluded := map[edge.Reason]int32{}
	for i := range verdicts {
		if something, _ := verdicts[i].gets(); something {
			c.status.Selected++
		} else {
			excluded[verdicts[i].why()]++
		}
	}
	c.status.Deployable = c.status.Selected > 0
	for reason, nodes := range excluded {
		c.status.Excluded = append(c.status.Excluded, api.ExcludedNodes{Reason: clip(string(reason), maxWord), Nodes: nodes})
	}
	slices.SortFunc(c.status.Excluded, func(a, b api.ExcludedNodes) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Reason, b.Reason))
	})
	c.status.Excluded = c.status.Excluded[:min(len(c.status.Excluded), maxReasons)]
}

// result returns what would be deployed to a node.
func (c *checked) result(v *verdict) api.NodeVerdict {
	out := api.NodeVerdict{Node: v.node.Name}
	if v.reason != "" {
		out.Reason, out.Message = string(v.reason), messages[v.reason]
		return out
	}
	_, out.Deployable = v.gets()
	for i := range min(len(v.decisions), maxServices) {
		d, spec := &v.decisions[i], c.deployments[i].Spec()
		s := api.ServiceVerdict{Name: spec.Service, Org: spec.Org, Deployable: d.Compatible, Version: d.Version, TargetNamespace: d.Namespace,
			Message: clip(explain(d), maxServiceMessage)}
		if !d.Compatible {
			s.Reason = string(d.Reason)
		}
		out.Services = append(out.Services, s)
	}
	if !out.Deployable {
		out.Reason = string(v.why())
	}
	out.Message = clip(c.summary(v, out.Deployable), maxMessage)
	return out
}

// summary returns the message for all services together: that of the first service with the reason, or of the first that is deployed.
func (c *checked) summary(v *verdict, deployable bool) string {
	why := first(v.decisions)
	for i := range v.decisions {
		d := &v.decisions[i]
		if deployable && d.Compatible || !deployable && !d.Compatible && d.Reason == why {
			if c.Policy != nil {
				return d.Message
			}
			return "service " + c.deployments[i].Spec().Service + ": " + d.Message
		}
	}
	return ""
}

// explain returns the message for each version that is not deployed.
func explain(d *edge.Decision) string {
	if len(d.Rejected) == 0 || !d.Compatible && len(d.Rejected) == 1 && d.Reason == d.Rejected[0].Reason {
		return d.Message
	}
	parts := make([]string, 0, len(d.Rejected)+1)
	if d.Compatible || d.Reason != d.Rejected[0].Reason {
		parts = append(parts, d.Message)
	}
	for _, r := range d.Rejected {
		parts = append(parts, "version "+r.Version+": "+r.Message)
	}
	return strings.Join(parts, "; ")
}

// clip truncates a text to a number of characters.
func clip(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
