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

// place is where there can be one of a service.
type place struct{ cluster, namespace, org, service string }

// Once lets a service be in a namespace of a cluster once. Of several placements that would bring it there, by several agents of the
// cluster or by several deployments, one stays: what is there already; else that of the agent with fewer rights; else the first by the
// names of node and deployment. The decisions of the others are changed. The order of the list makes no difference.
//
// Two nodes are in one cluster where the facts say so. Where they do not, nothing is found.
func Once(placements []*Placement) {
	found := map[place][]*Placement{}
	for _, p := range placements {
		if !p.Decision.Compatible || p.Decision.Namespace == "" {
			continue
		}
		at := place{p.Node.clusterID(), p.Decision.Namespace, p.Deployment.spec.Org, p.Deployment.spec.Service}
		found[at] = append(found[at], p)
	}
	for at, list := range found {
		slices.SortFunc(list, func(a, b *Placement) int {
			return cmp.Or(boolean(!a.Placed, !b.Placed), boolean(a.Node.facts.Scope != NamespaceScoped, b.Node.facts.Scope != NamespaceScoped),
				cmp.Compare(a.Node.name, b.Node.name), boolean(a.Deployment.spec.Pattern, b.Deployment.spec.Pattern),
				cmp.Compare(a.Deployment.spec.Name, b.Deployment.spec.Name))
		})
		for _, p := range list[1:] {
			p.Decision = Decision{Reason: ThereAlready, Rejected: p.Decision.Rejected,
				Message: thereAlready(at.namespace, list[0])}
		}
	}
}
