// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"slices"
)

// Placement is a deployment on a node, with its decision.
type Placement struct {
	Node       *Node
	Deployment *Deployment
	Decision   Decision
	// Hidden means that messages name neither its node nor its deployment, because their readers may not see these.
	Hidden bool
	// Placed means that it is already placed, in the namespace of the decision.
	Placed bool
}

// Place is where a service can be placed once: a namespace of a cluster.
type Place struct{ cluster, namespace, org, service string }

// Place returns the place of a placement. It returns false if nothing is placed, or if there is no namespace.
func (p *Placement) Place() (Place, bool) {
	if !p.Decision.Compatible || p.Decision.Namespace == "" {
		return Place{}, false
	}
	return Place{p.Node.clusterID(), p.Decision.Namespace, p.Deployment.spec.Org, p.Deployment.spec.Service}, true
}

// Before reports which of two placements gets their place, if it is the same: the result is negative if this one does. It is zero only for the same
// deployment on the same node.
func (p *Placement) Before(other *Placement) int {
	mine, theirs := &p.Deployment.spec, &other.Deployment.spec
	return cmp.Or(boolean(!p.Placed, !other.Placed), boolean(p.Node.facts.Scope != NamespaceScoped, other.Node.facts.Scope != NamespaceScoped),
		cmp.Compare(p.Node.name, other.Node.name), boolean(mine.Pattern, theirs.Pattern), cmp.Compare(mine.Name, theirs.Name))
}

// Once ensures that a service is in a namespace of a cluster only once. Of several placements that would deploy it there, by several agents of the
// cluster or by several deployments, one stays: the one that is already placed; otherwise that of the agent with fewer rights; otherwise the first by
// the names of node and deployment; for one deployment on one node, the first in the list. The decisions of the others are changed. The order of the
// list makes no other difference.
//
// Two nodes are in one cluster if the facts say so. If they do not, no conflict is found.
func Once(placements []*Placement) {
	found := map[Place][]*Placement{}
	for _, p := range placements {
		if at, somewhere := p.Place(); somewhere {
			found[at] = append(found[at], p)
		}
	}
	for at, list := range found {
		slices.SortStableFunc(list, (*Placement).Before)
		for _, p := range list[1:] {
			p.Decision = Decision{Reason: ThereAlready, Rejected: p.Decision.Rejected,
				Message: alreadyPlacedMessage(at.namespace, list[0])}
		}
	}
}
