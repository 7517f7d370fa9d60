// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// Question is a DeployCheck with all that it depends on.
type Question struct {
	// Namespace is the namespace of the policy or pattern.
	Namespace string
	// Name is the name of the policy or pattern. If that is in the check itself, it is metadata.name of the check, or empty: then it differs from all
	// existing ones.
	Name string
	// Policy or Pattern is the deployment to check: exactly one is set.
	Policy  *api.DeploymentPolicySpec
	Pattern *api.DeploymentPatternSpec
	// Services are all services that could be meant, with the contents of their archives. They do not include those that the user may not use.
	Services []edge.Service
	// Published are those of them that are in the check itself: they get the same warnings as when they are written.
	Published []edge.Service
	// Nodes are all nodes to check, each once.
	Nodes []Candidate
	// Placed are the services that are already placed on the nodes, and on others of their clusters: see model.Placed. Those of this policy or
	// pattern are recognized by its name.
	Placed []*edge.Placement
	// Limit is the maximum number of nodes in the answer, and Continue the position where they begin: see api.DeployCheckSpec.
	Limit    int
	Continue string
}

// Candidate is a node to check.
type Candidate struct {
	Name string
	// Node is nil for a node with a reason, and for one that cannot be parsed.
	Node *edge.Node
	// Reason is why nothing would be deployed whatever the rules are: NodeNotFound or NotReached.
	Reason edge.Reason
	// Hidden means that the user may not see the node: it counts, and no answer names it.
	Hidden bool
}

// Read parses a node. Nothing is deployed to one that cannot be parsed.
func Read(spec edge.NodeSpec) Candidate {
	n, err := edge.NewNode(spec)
	if err != nil {
		return Candidate{Name: spec.Name, Reason: NodeUnreadable}
	}
	return Candidate{Name: spec.Name, Node: n}
}

// verdict is the result for a node.
type verdict struct {
	node *Candidate
	// reason is one that applies whatever the rules are.
	reason edge.Reason
	// decisions are those of each service. They are only stored for nodes in the answer, and for nodes that something would be deployed to.
	decisions []edge.Decision
	// first is the reason for the node if there are no decisions.
	first edge.Reason
}

// Answer answers a question.
func Answer(q *Question) (*api.DeployCheckStatus, error) {
	if (q.Policy == nil) == (q.Pattern == nil) {
		return nil, fmt.Errorf("expected either a policy or a pattern")
	}
	c := &checked{Question: q}
	c.publish()
	nodes := q.Nodes
	byName := func(a, b Candidate) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(nodes, byName) {
		nodes = slices.Clone(nodes)
		slices.SortFunc(nodes, byName)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	var page []int
	more := false
	for i := range nodes {
		if nodes[i].Hidden || nodes[i].Name <= q.Continue {
			continue
		}
		more = len(page) == limit
		if more {
			break
		}
		page = append(page, i)
	}
	verdicts := make([]verdict, len(nodes))
	for i, next := 0, 0; i < len(nodes); i++ {
		listed := next < len(page) && page[next] == i
		if listed {
			next++
		}
		verdicts[i] = c.evaluate(&nodes[i], listed)
	}
	c.excludePlaced(verdicts)
	c.count(verdicts)
	for _, i := range page {
		c.status.Nodes = append(c.status.Nodes, c.result(&verdicts[i]))
	}
	if more {
		c.status.Continue = nodes[page[len(page)-1]].Name
	}
	return &c.status, nil
}

// checked is a question that is being answered.
type checked struct {
	*Question
	status      api.DeployCheckStatus
	deployments []*edge.Deployment
	// name is the qualified name of the policy or pattern.
	name string
	// refused is why nothing at all would be deployed.
	refused edge.Reason
	// one has the decision of a policy, as long as it is not known whether it must be stored.
	one [1]edge.Decision
}

// warn adds warnings to the answer.
func (c *checked) warn(texts ...string) {
	for _, text := range texts {
		text = strings.TrimSuffix(text, edge.AskDeployCheck)
		switch have := len(c.status.Warnings); {
		case text == "" || have == maxWarnings:
		case have == maxWarnings-1:
			c.status.Warnings = append(c.status.Warnings, "there are more warnings, which are not shown")
		default:
			c.status.Warnings = append(c.status.Warnings, clip(text, maxMessage))
		}
	}
}

// publish parses what would be deployed, and adds the warnings that are given when it is written.
func (c *checked) publish() {
	c.name = model.Qualified(c.Namespace, c.Name)
	var specs []edge.DeploymentSpec
	if c.Policy != nil {
		specs = []edge.DeploymentSpec{model.Policy(c.Namespace, c.Name, c.Policy, c.Services)}
		analysis, err := edge.Analyze(specs[0])
		if err == nil {
			c.warn(analysis.Warning())
		}
		c.warn(edge.ConstraintWarnings(c.Policy.Constraints, "spec.constraints", c.status.Warnings)...)
		c.warn(model.WithoutEffect(c.Policy.Service.ServiceVersions, "spec.service", false)...)
	} else {
		specs = model.PatternServices(c.Namespace, c.Name, c.Pattern, c.Services)
		pattern := model.Pattern(c.Namespace, c.Pattern, c.Services)
		faults, warnings := pattern.Check()
		for _, fault := range faults {
			c.refused = PatternRefused
			c.warn("the pattern is refused: " + fault)
		}
		c.warn(warnings...)
		for i := range c.Pattern.Services {
			c.warn(model.WithoutEffect(c.Pattern.Services[i].ServiceVersions, fmt.Sprintf("spec.services[%d]", i), true)...)
		}
	}
	for i := range c.Published {
		s := &c.Published[i]
		said := s.Warnings()
		for _, warning := range append(said, edge.ConstraintWarnings(s.Policy.Constraints, "spec.policy.constraints", said)...) {
			c.warn(fmt.Sprintf("service %s, version %s for %s: %s", s.Name, s.Version, s.Arch, warning))
		}
	}
	for i := range specs {
		d, err := edge.NewDeployment(specs[i])
		if err != nil {
			c.refused = Unreadable
			c.warn(err.Error())
			return
		}
		c.deployments = append(c.deployments, d)
	}
}

// evaluate decides about a node. The decisions are stored if the node is in the answer.
func (c *checked) evaluate(n *Candidate, listed bool) verdict {
	v := verdict{node: n, reason: n.Reason}
	switch {
	case v.reason != "":
	case n.Node == nil:
		v.reason = NodeUnreadable
	case c.refused != "":
		v.reason = c.refused
	}
	if v.reason != "" {
		return v
	}
	var decisions []edge.Decision
	if c.Policy != nil {
		c.one[0] = edge.Decide(n.Node, c.deployments[0])
		decisions = c.one[:]
	} else {
		as := n.Node.AsIf(c.name)
		decisions, _ = edge.DecidePattern(&as, c.deployments)
	}
	if listed || slices.ContainsFunc(decisions, func(d edge.Decision) bool { return d.Compatible }) {
		v.decisions = slices.Clone(decisions)
	} else {
		v.first = first(decisions)
	}
	return v
}

// excludePlaced excludes services that are already placed.
func (c *checked) excludePlaced(verdicts []verdict) {
	type own struct {
		node, org, service, namespace string
	}
	kind := api.KindDeploymentPolicy
	if c.Pattern != nil {
		kind = api.KindDeploymentPattern
	}
	placements, mine := []*edge.Placement{}, map[own]bool{}
	for _, p := range c.Placed {
		// A policy or pattern does not conflict with its own placements.
		if spec := p.Deployment.Spec(); c.Name != "" && spec.Name == c.name && spec.Pattern == (kind == api.KindDeploymentPattern) {
			mine[own{p.Node.Name(), spec.Org, spec.Service, p.Decision.Namespace}] = true
			continue
		}
		// Once changes the placement, which others share.
		other := *p
		placements = append(placements, &other)
	}
	type back struct{ to, from *edge.Decision }
	var changed []back
	for i := range verdicts {
		v := &verdicts[i]
		for j := range v.decisions {
			if d := &v.decisions[j]; d.Compatible && d.Namespace != "" {
				spec := c.deployments[j].Spec()
				p := &edge.Placement{Node: v.node.Node, Deployment: c.deployments[j], Decision: *d, Hidden: v.node.Hidden,
					Placed: mine[own{v.node.Name, spec.Org, spec.Service, d.Namespace}]}
				placements, changed = append(placements, p), append(changed, back{d, &p.Decision})
			}
		}
	}
	edge.Once(placements)
	for _, b := range changed {
		*b.to = *b.from
	}
}
