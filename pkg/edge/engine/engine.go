// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine maintains for all policies and patterns of a hub which nodes get what, and computes the differences after each change, at a cost in
// proportion to the change. It is pure: it gets nodes, sets, bindings, services, deployments, and what is placed. Its results are always those of
// edge.Decide, edge.DecidePattern and edge.Once for everything together; the tests compare the two after each of many random changes.
//
// Three things make a change cheap. An index of what constraints require rules most nodes out, without evaluating them. Nodes that only differ in
// their properties are of one class, and for those that are ruled out the reason is computed once for the class. And conflicts about places in a
// cluster are only resolved for the places that change.
package engine

import (
	"maps"

	"github.com/clusterhub/clusterhub/pkg/edge"
)

// NotDelivered is the reason of a device that all rules allow: nothing is delivered to devices.
const NotDelivered edge.Reason = "NotDelivered"

// Key identifies a policy or a pattern.
type Key struct {
	Namespace string
	Pattern   bool
	Name      string
}

// Pair is a policy or a pattern on a node.
type Pair struct {
	Key
	Node string
}

// ServiceKey identifies a service, in all its versions.
type ServiceKey struct{ Org, Name string }

// Placed is a version of a service in a namespace of a node.
type Placed struct {
	ServiceKey
	Version, Arch, Namespace string
}

// Counts are the numbers of nodes that a policy or pattern reaches.
type Counts struct {
	// Reached is the number of all of them, and Selected that of nodes that something is desired on.
	Reached, Selected int
	// Excluded counts the others by the first rule that excludes them.
	Excluded map[edge.Reason]int
}

// Engine holds all that decisions depend on. It is not safe for concurrent use: its writer is its reader.
type Engine struct {
	nodes map[string]*parsedNode
	// classes are indexed by the text of the class. byPattern has the nodes that run a pattern.
	classes   map[string]*class
	byPattern map[string]map[*parsedNode]bool
	index     nodeIndex
	// setsOf are the sets that a node is in, and members the nodes of a set, whether the nodes exist or not.
	setsOf     map[string][]string
	members    map[string]map[string]bool
	bound      map[string]map[*namespace]bool
	namespaces map[string]*namespace

	services    map[ServiceKey]map[version]edge.Service
	users       map[ServiceKey]map[*deployment]bool
	deployments map[Key]*deployment

	placed map[Pair][]Placed
	// failed are the versions of the services of a policy or pattern that have failed on a node.
	failed map[Pair][]edge.Failed
	sites  map[edge.Place]*site
	// crowded are the sites whose claims have changed.
	crowded map[*site]bool

	pairs map[Pair]bool
	keys  map[Key]bool
	// Decided counts how often a node and a deployment were judged, for tests and metrics.
	Decided int
}

// New returns an empty Engine.
func New() *Engine {
	return &Engine{
		nodes: map[string]*parsedNode{}, classes: map[string]*class{}, byPattern: map[string]map[*parsedNode]bool{}, index: nodeIndex{},
		setsOf: map[string][]string{}, members: map[string]map[string]bool{}, bound: map[string]map[*namespace]bool{}, namespaces: map[string]*namespace{},
		services: map[ServiceKey]map[version]edge.Service{}, users: map[ServiceKey]map[*deployment]bool{}, deployments: map[Key]*deployment{},
		placed: map[Pair][]Placed{}, failed: map[Pair][]edge.Failed{}, sites: map[edge.Place]*site{}, crowded: map[*site]bool{}, pairs: map[Pair]bool{}, keys: map[Key]bool{},
	}
}

// Changed returns the deployments on nodes that may have changed since the last call, and the deployments whose counts may have changed. Each is
// returned once, however often it has changed.
func (e *Engine) Changed() (pairs []Pair, keys []Key) {
	for pair := range e.pairs {
		pairs = append(pairs, pair)
	}
	for key := range e.keys {
		keys = append(keys, key)
	}
	e.pairs, e.keys = map[Pair]bool{}, map[Key]bool{}
	return pairs, keys
}

// Desired returns what is desired for a deployment on a node, in the order of its services; empty if nothing is.
func (e *Engine) Desired(pair Pair) []Placed {
	d, n := e.deployments[pair.Key], e.nodes[pair.Node]
	if d == nil || n == nil {
		return nil
	}
	r := d.results[n]
	if r == nil {
		return nil
	}
	var wanted []Placed
	for _, c := range r.claims {
		if c.has {
			wanted = append(wanted, c.placed())
		}
	}
	return wanted
}

// Reason returns why a deployment has what it has on a node, edge.Fits if something is desired. It is empty for a node that is not reached.
func (e *Engine) Reason(pair Pair) edge.Reason {
	d, n := e.deployments[pair.Key], e.nodes[pair.Node]
	if d == nil || n == nil || d.namespace.nodes[n] == 0 || d.err != nil {
		return ""
	}
	return d.reason(n)
}

// Counts returns the counts of a deployment. They are empty if it does not exist.
func (e *Engine) Counts(key Key) Counts {
	d := e.deployments[key]
	if d == nil {
		return Counts{}
	}
	c := Counts{Reached: len(d.namespace.nodes), Selected: d.selected, Excluded: maps.Clone(d.excluded)}
	return c
}

// State returns the faults of a deployment as a whole: the services of which no version that it names exists, and why it cannot be parsed. Then
// nothing is desired for it.
func (e *Engine) State(key Key) (missing []ServiceKey, err error) {
	d := e.deployments[key]
	if d == nil {
		return nil, nil
	}
	for i, c := range d.compiled {
		if !c.Found() {
			missing = append(missing, d.specs[i].service())
		}
	}
	return missing, d.err
}

// Bound reports whether a set is bound to a namespace that has deployments.
func (e *Engine) Bound(name string) bool {
	ns := e.namespaces[name]
	return ns != nil && len(ns.sets) > 0
}
