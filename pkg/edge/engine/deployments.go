// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

// version identifies a version of a service, for one architecture.
type version struct{ version, arch string }

// Spec is a policy, or a pattern with one of its services.
type Spec = edge.DeploymentSpec

type spec edge.DeploymentSpec

func (s *spec) service() ServiceKey { return ServiceKey{s.Org, s.Service} }

// deployment is a policy, or a pattern with all its services.
type deployment struct {
	key       Key
	namespace *namespace
	specs     []spec
	compiled  []*edge.Deployment
	err       error
	names     []string
	branches  []constraint.Branch

	// results are those of the nodes that were judged. All others are ruled out, for a reason that depends on their class.
	results map[*parsedNode]*result
	byClass map[*class]edge.Reason
	// excluded and selected count all nodes that are reached.
	excluded map[edge.Reason]int
	selected int
}

// result is the result for a node that was not ruled out.
type result struct {
	// reason is edge.Fits if there are claims.
	reason edge.Reason
	claims []*claim
}

// reportedReason returns the reason, considering places that others have taken.
func (r *result) reportedReason() edge.Reason {
	if r.reason != edge.Fits {
		return r.reason
	}
	for _, c := range r.claims {
		if c.has {
			return edge.Fits
		}
	}
	return edge.ThereAlready
}

// SetDeployment adds or replaces a policy, which has one spec, or a pattern, which has one for each of its services. The specs have no services,
// which the engine already has. Their names are qualified by the namespace, as patterns of nodes are. With an error, nothing is desired for it.
func (e *Engine) SetDeployment(key Key, specs []edge.DeploymentSpec) error {
	d := e.deployments[key]
	if d == nil {
		d = &deployment{key: key, namespace: e.namespace(key.Namespace), results: map[*parsedNode]*result{}}
		d.namespace.deployments[d] = true
		e.deployments[key] = d
	}
	e.release(d)
	d.specs = nil
	for _, s := range specs {
		d.specs = append(d.specs, spec(s))
	}
	e.compile(d)
	for i := range d.specs {
		service := d.specs[i].service()
		if e.users[service] == nil {
			e.users[service] = map[*deployment]bool{}
		}
		e.users[service][d] = true
	}
	e.evaluateAll(d)
	e.assignPlaces()
	return d.err
}

// release removes a deployment from the indexes.
func (e *Engine) release(d *deployment) {
	for i := range d.specs {
		service := d.specs[i].service()
		delete(e.users[service], d)
		if len(e.users[service]) == 0 {
			delete(e.users, service)
		}
	}
	e.unname(d)
}

func (e *Engine) unname(d *deployment) {
	for _, name := range d.names {
		delete(d.namespace.naming[name], d)
		if len(d.namespace.naming[name]) == 0 {
			delete(d.namespace.naming, name)
		}
	}
	d.names = nil
}

// DeleteDeployment deletes a deployment. Its placements are no longer desired.
func (e *Engine) DeleteDeployment(key Key) {
	d := e.deployments[key]
	if d == nil {
		return
	}
	e.release(d)
	for n := range d.results {
		e.forget(d, n)
	}
	delete(d.namespace.deployments, d)
	delete(e.deployments, key)
	e.drop(d.namespace)
	e.keys[key] = true
	e.assignPlaces()
}

// SetService adds or replaces one version of a service for one architecture.
func (e *Engine) SetService(s edge.Service) {
	key := ServiceKey{s.Org, s.Name}
	if e.services[key] == nil {
		e.services[key] = map[version]edge.Service{}
	}
	e.services[key][version{s.Version, s.Arch}] = s
	e.again(key)
}

// DeleteService deletes one version of a service for one architecture.
func (e *Engine) DeleteService(key ServiceKey, number, arch string) {
	v := version{number, arch}
	if _, there := e.services[key][v]; !there {
		return
	}
	delete(e.services[key], v)
	if len(e.services[key]) == 0 {
		delete(e.services, key)
	}
	e.again(key)
}

// again compiles and judges all deployments of a service again.
func (e *Engine) again(key ServiceKey) {
	for d := range e.users[key] {
		e.unname(d)
		e.compile(d)
		e.evaluateAll(d)
	}
	e.assignPlaces()
}

// compile parses the specs with the existing services.
func (e *Engine) compile(d *deployment) {
	d.compiled, d.err, d.branches = nil, nil, nil
	d.byClass = map[*class]edge.Reason{}
	for _, s := range d.specs {
		there := e.services[s.service()]
		versions := slices.SortedFunc(maps.Keys(there), func(a, b version) int {
			return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.arch, b.arch))
		})
		s.Services = nil
		for _, v := range versions {
			if slices.ContainsFunc(s.Choices, func(c edge.Choice) bool { return c.Version == v.version }) {
				s.Services = append(s.Services, there[v])
			}
		}
		one, err := edge.NewDeployment(edge.DeploymentSpec(s))
		if err != nil {
			d.compiled, d.err = nil, err
			return
		}
		d.compiled = append(d.compiled, one)
		d.names = append(d.names, one.Names()...)
	}
	slices.Sort(d.names)
	d.names = slices.Compact(d.names)
	for _, name := range d.names {
		if d.namespace.naming[name] == nil {
			d.namespace.naming[name] = map[*deployment]bool{}
		}
		d.namespace.naming[name][d] = true
	}
	if !d.key.Pattern && len(d.compiled) > 0 {
		d.branches = d.compiled[0].Requires()
	}
}

// evaluateAll decides about all nodes that cannot be ruled out, and counts all others by their class.
func (e *Engine) evaluateAll(d *deployment) {
	before := d.results
	for n := range before {
		e.abandon(d, n)
	}
	d.results, d.excluded, d.selected = map[*parsedNode]*result{}, map[edge.Reason]int{}, 0
	e.keys[d.key] = true
	if d.err != nil || len(d.compiled) == 0 {
		return
	}
	for c, nodes := range d.namespace.classes {
		d.excluded[d.ruledOut(c)] += nodes
	}
	e.candidates(d, func(n *parsedNode) {
		if d.results[n] == nil {
			e.evaluate(d, n)
		}
	})
}

// evaluate decides about one node that is reached and counted.
func (e *Engine) evaluate(d *deployment, n *parsedNode) {
	if d.err != nil || len(d.compiled) == 0 {
		return
	}
	d.uncount(n)
	e.forget(d, n)
	if d.admits(n) {
		e.Decided++
		d.results[n] = e.decide(d, n)
	}
	d.count(n)
	e.keys[d.key] = true
}

func (e *Engine) decide(d *deployment, n *parsedNode) *result {
	decisions, compatible, failed := []edge.Decision(nil), false, e.failed[Pair{d.key, n.name}]
	if d.key.Pattern {
		decisions, compatible = edge.DecidePattern(n.now, d.compiled, failed...)
	} else {
		decisions = []edge.Decision{edge.Decide(n.now, d.compiled[0], failed...)}
		compatible = decisions[0].Compatible
	}
	if !compatible {
		return &result{reason: Why(decisions)}
	}
	if n.now.Type() != edge.Cluster {
		return &result{reason: NotDelivered}
	}
	r := &result{reason: edge.Fits}
	for i, decision := range decisions {
		if decision.Compatible {
			r.claims = append(r.claims, e.claim(d, n, i, decision))
		}
	}
	return r
}

// Why returns the reason why a node gets nothing of a pattern: that of the first service which excludes the others; if all services are for other
// nodes, that of the first.
func Why(decisions []edge.Decision) edge.Reason {
	for _, d := range decisions {
		switch d.Reason {
		case edge.PartOfPattern, edge.ArchMismatch, edge.NotForClusters, edge.NotForDevices, edge.Fits:
		default:
			return d.Reason
		}
	}
	for _, d := range decisions {
		if !d.Compatible {
			return d.Reason
		}
	}
	return edge.NoVersion
}

// ruledOut returns the reason for nodes of a class that were not judged.
func (d *deployment) ruledOut(c *class) edge.Reason {
	reason, known := d.byClass[c]
	if !known {
		reason = edge.RuledOut(c.example, d.compiled[0])
		d.byClass[c] = reason
	}
	return reason
}

func (d *deployment) reason(n *parsedNode) edge.Reason {
	if r := d.results[n]; r != nil {
		return r.reportedReason()
	}
	return d.ruledOut(n.class)
}

func (d *deployment) count(n *parsedNode)   { d.add(n, 1) }
func (d *deployment) uncount(n *parsedNode) { d.add(n, -1) }

func (d *deployment) add(n *parsedNode, one int) {
	if d.err != nil || len(d.compiled) == 0 {
		return
	}
	reason := d.reason(n)
	if reason == edge.Fits {
		d.selected += one
		return
	}
	d.excluded[reason] += one
	if d.excluded[reason] == 0 {
		delete(d.excluded, reason)
	}
}
