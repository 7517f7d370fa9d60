// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"slices"
)

// Placement is a deployment on a node, as it was decided.
type Placement struct {
	Node       *Node
	Deployment *Deployment
	Decision   Decision
	// Hidden says that messages name neither its node nor its deployment: who reads them may not see these.
	Hidden bool
	// Placed says that it is there already, in the namespace of the decision.
	Placed bool
}

// Place is where there can be one of a service: a namespace of a cluster.
type Place struct{ cluster, namespace, org, service string }

// Place is where it would be. It is false where nothing is to be there, or where there is no namespace.
func (p *Placement) Place() (Place, bool) {
	if !p.Decision.Compatible || p.Decision.Namespace == "" {
		return Place{}, false
	}
	return Place{p.Node.clusterID(), p.Decision.Namespace, p.Deployment.spec.Org, p.Deployment.spec.Service}, true
}

// Before says which of two placements has their place, if it is one: it is negative if that is this one. It is zero only for one deployment
// on one node.
func (p *Placement) Before(other *Placement) int {
	mine, theirs := &p.Deployment.spec, &other.Deployment.spec
	return cmp.Or(boolean(!p.Placed, !other.Placed), boolean(p.Node.facts.Scope != NamespaceScoped, other.Node.facts.Scope != NamespaceScoped),
		cmp.Compare(p.Node.name, other.Node.name), boolean(mine.Pattern, theirs.Pattern), cmp.Compare(mine.Name, theirs.Name))
}

// Once lets a service be in a namespace of a cluster once. Of several placements that would bring it there, by several agents of the
// cluster or by several deployments, one stays: what is there already; else that of the agent with fewer rights; else the first by the
// names of node and deployment; of one deployment on one node, the first in the list. The decisions of the others are changed. The order of the list makes no other difference.
//
// Two nodes are in one cluster where the facts say so. Where they do not, nothing is found.
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
				Message: thereAlready(at.namespace, list[0])}
		}
	}
}
