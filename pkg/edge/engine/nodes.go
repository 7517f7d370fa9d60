// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/clusterhub/clusterhub/pkg/edge"
)

// parsedNode is a parsed node. The pointer is the same as long as a node of the name exists.
type parsedNode struct {
	name  string
	now   *edge.Node
	class *class
	// namespaces are the namespaces that reach the node.
	namespaces map[*namespace]bool
}

// class stands for the nodes that only differ in properties and constraints.
type class struct {
	text string
	// example is any of them, which may no longer exist.
	example *edge.Node
	nodes   int
}

// namespace is a namespace that has deployments, or that sets are bound to.
type namespace struct {
	name string
	sets map[string]bool
	// nodes are the nodes that the namespace reaches, with the number of its sets that they are in. classes has the number of nodes of each class.
	nodes       map[*parsedNode]int
	classes     map[*class]int
	deployments map[*deployment]bool
	// naming has the deployments that depend on a property of this name.
	naming map[string]map[*deployment]bool
}

// SetNode adds or replaces a node. If it returns an error, the node is deleted.
func (e *Engine) SetNode(spec edge.NodeSpec) error {
	now, err := edge.NewNode(spec)
	if err != nil {
		e.DeleteNode(spec.Name)
		return err
	}
	n := e.nodes[spec.Name]
	if n == nil {
		n = &parsedNode{name: spec.Name, now: now, namespaces: map[*namespace]bool{}}
		e.nodes[spec.Name] = n
		e.classify(n)
		e.index.add(n, now)
		for _, set := range e.setsOf[spec.Name] {
			for ns := range e.bound[set] {
				e.reach(ns, n)
			}
		}
		e.assignPlaces()
		return nil
	}
	names, same := n.now.Changed(now)
	if same && len(names) == 0 {
		return nil
	}
	affected := map[*deployment]bool{}
	for ns := range n.namespaces {
		if !same {
			for d := range ns.deployments {
				affected[d] = true
			}
			continue
		}
		for _, name := range names {
			for d := range ns.naming[name] {
				affected[d] = true
			}
		}
	}
	for d := range affected {
		d.uncount(n)
	}
	e.replace(n, now)
	for d := range affected {
		d.count(n)
		e.evaluate(d, n)
	}
	e.assignPlaces()
	return nil
}

// replace updates all data of a node. The caller must have uncounted it from all deployments that depend on its class.
func (e *Engine) replace(n *parsedNode, now *edge.Node) {
	e.index.remove(n, n.now)
	for ns := range n.namespaces {
		ns.uncountClass(n.class)
	}
	e.declassify(n)
	n.now = now
	e.classify(n)
	for ns := range n.namespaces {
		ns.classes[n.class]++
	}
	e.index.add(n, now)
}

func (ns *namespace) uncountClass(c *class) {
	ns.classes[c]--
	if ns.classes[c] == 0 {
		delete(ns.classes, c)
		for d := range ns.deployments {
			delete(d.byClass, c)
		}
	}
}

func (e *Engine) classify(n *parsedNode) {
	text := n.now.Class()
	c := e.classes[text]
	if c == nil {
		c = &class{text: text, example: n.now}
		e.classes[text] = c
	}
	c.nodes++
	n.class = c
	if pattern := n.now.Pattern(); pattern != "" {
		if e.byPattern[pattern] == nil {
			e.byPattern[pattern] = map[*parsedNode]bool{}
		}
		e.byPattern[pattern][n] = true
	}
}

func (e *Engine) declassify(n *parsedNode) {
	n.class.nodes--
	if n.class.nodes == 0 {
		delete(e.classes, n.class.text)
	}
	if pattern := n.now.Pattern(); pattern != "" {
		delete(e.byPattern[pattern], n)
		if len(e.byPattern[pattern]) == 0 {
			delete(e.byPattern, pattern)
		}
	}
}

// DeleteNode deletes a node. Its placements are no longer desired.
func (e *Engine) DeleteNode(name string) {
	n := e.nodes[name]
	if n == nil {
		return
	}
	for ns := range n.namespaces {
		e.removeNode(ns, n)
	}
	e.index.remove(n, n.now)
	e.declassify(n)
	delete(e.nodes, name)
	e.assignPlaces()
}

// SetSets sets the sets that a node is in, whether the node exists or not.
func (e *Engine) SetSets(name string, sets []string) {
	before, n := e.setsOf[name], e.nodes[name]
	for _, set := range sets {
		if slices.Contains(before, set) {
			continue
		}
		if e.members[set] == nil {
			e.members[set] = map[string]bool{}
		}
		e.members[set][name] = true
		for ns := range e.bound[set] {
			e.reach(ns, n)
		}
	}
	for _, set := range before {
		if slices.Contains(sets, set) {
			continue
		}
		delete(e.members[set], name)
		if len(e.members[set]) == 0 {
			delete(e.members, set)
		}
		for ns := range e.bound[set] {
			e.removeFromSet(ns, n)
		}
	}
	e.setsOf[name] = slices.Clone(sets)
	if len(sets) == 0 {
		delete(e.setsOf, name)
	}
	e.assignPlaces()
}

// Bind makes a namespace reach the nodes of a set.
func (e *Engine) Bind(name, set string) {
	ns := e.namespace(name)
	if ns.sets[set] {
		return
	}
	ns.sets[set] = true
	if e.bound[set] == nil {
		e.bound[set] = map[*namespace]bool{}
	}
	e.bound[set][ns] = true
	for member := range e.members[set] {
		e.reach(ns, e.nodes[member])
	}
	e.allKeys(ns)
	e.assignPlaces()
}

// Unbind reverts Bind.
func (e *Engine) Unbind(name, set string) {
	ns := e.namespaces[name]
	if ns == nil || !ns.sets[set] {
		return
	}
	delete(ns.sets, set)
	delete(e.bound[set], ns)
	if len(e.bound[set]) == 0 {
		delete(e.bound, set)
	}
	for member := range e.members[set] {
		e.removeFromSet(ns, e.nodes[member])
	}
	e.allKeys(ns)
	e.drop(ns)
	e.assignPlaces()
}

// allKeys marks all deployments of a namespace as changed: their conditions report whether sets are bound.
func (e *Engine) allKeys(ns *namespace) {
	for d := range ns.deployments {
		e.keys[d.key] = true
	}
}

func (e *Engine) namespace(name string) *namespace {
	ns := e.namespaces[name]
	if ns == nil {
		ns = &namespace{name: name, sets: map[string]bool{}, nodes: map[*parsedNode]int{}, classes: map[*class]int{}, deployments: map[*deployment]bool{},
			naming: map[string]map[*deployment]bool{}}
		e.namespaces[name] = ns
	}
	return ns
}

// drop deletes an empty namespace.
func (e *Engine) drop(ns *namespace) {
	if len(ns.sets) == 0 && len(ns.deployments) == 0 {
		delete(e.namespaces, ns.name)
	}
}

// reach handles that a node is in one more of the sets of a namespace.
func (e *Engine) reach(ns *namespace, n *parsedNode) {
	if n == nil {
		return
	}
	ns.nodes[n]++
	if ns.nodes[n] > 1 {
		return
	}
	ns.classes[n.class]++
	n.namespaces[ns] = true
	for d := range ns.deployments {
		d.count(n)
		e.evaluate(d, n)
		e.keys[d.key] = true
	}
}

// removeFromSet handles that a node is in one less of the sets of a namespace.
func (e *Engine) removeFromSet(ns *namespace, n *parsedNode) {
	if n == nil || ns.nodes[n] == 0 {
		return
	}
	ns.nodes[n]--
	if ns.nodes[n] == 0 {
		e.removeNode(ns, n)
	}
}

// removeNode handles that the namespace no longer reaches the node.
func (e *Engine) removeNode(ns *namespace, n *parsedNode) {
	for d := range ns.deployments {
		d.uncount(n)
		e.forget(d, n)
		e.keys[d.key] = true
	}
	delete(ns.nodes, n)
	delete(n.namespaces, ns)
	ns.uncountClass(n.class)
}
