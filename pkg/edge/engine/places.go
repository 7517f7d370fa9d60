// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/edge"
)

// site is a place in a cluster for a service, with all claims to it.
type site struct {
	place  edge.Place
	claims []*claim
}

// claim is a service of a deployment that a node would get.
type claim struct {
	edge.Placement
	deployment *deployment
	node       *parsedNode
	// service is its index in the deployment.
	service int
	site    *site
	// has is whether the claim has the place.
	has bool
}

func (c *claim) placed() Placed {
	return Placed{ServiceKey: c.deployment.specs[c.service].service(), Version: c.Decision.Version, Arch: c.Decision.Arch, Namespace: c.Decision.Namespace}
}

func (c *claim) pair() Pair { return Pair{c.deployment.key, c.node.name} }

// claim claims the place of a decision.
func (e *Engine) claim(d *deployment, n *parsedNode, service int, decision edge.Decision) *claim {
	decision.Message, decision.Rejected = "", nil
	c := &claim{deployment: d, node: n, service: service,
		Placement: edge.Placement{Node: n.now, Deployment: d.compiled[service], Decision: decision}}
	c.Placed = e.isPlaced(c)
	place, _ := c.Place()
	s := e.sites[place]
	if s == nil {
		s = &site{place: place}
		e.sites[place] = s
	}
	c.site = s
	s.claims = append(s.claims, c)
	e.crowded[s] = true
	e.pairs[c.pair()] = true
	return c
}

// isPlaced reports whether the service is already placed, on the node and in the namespace of the decision, in any version.
func (e *Engine) isPlaced(c *claim) bool {
	service := c.deployment.specs[c.service].service()
	return slices.ContainsFunc(e.placed[c.pair()], func(p Placed) bool {
		return p.ServiceKey == service && p.Namespace == c.Decision.Namespace
	})
}

// forget discards the result for a node that is not counted.
func (e *Engine) forget(d *deployment, n *parsedNode) {
	e.abandon(d, n)
	delete(d.results, n)
}

// abandon releases the places that it had.
func (e *Engine) abandon(d *deployment, n *parsedNode) {
	r := d.results[n]
	if r == nil {
		return
	}
	for _, c := range r.claims {
		e.pairs[c.pair()] = true
		c.site.claims = slices.DeleteFunc(c.site.claims, func(other *claim) bool { return other == c })
		e.crowded[c.site] = true
	}
}

// SetPlaced sets what is placed for a deployment on a node, whether the engine wants it or not; empty for nothing.
func (e *Engine) SetPlaced(pair Pair, what []Placed) {
	if slices.Equal(e.placed[pair], what) {
		return
	}
	e.placed[pair] = slices.Clone(what)
	if len(what) == 0 {
		delete(e.placed, pair)
	}
	e.pairs[pair], e.keys[pair.Key] = true, true
	d, n := e.deployments[pair.Key], e.nodes[pair.Node]
	if d == nil || n == nil || d.results[n] == nil {
		return
	}
	for _, c := range d.results[n].claims {
		if placed := e.isPlaced(c); placed != c.Placed {
			c.Placed = placed
			e.crowded[c.site] = true
		}
	}
	e.assignPlaces()
}

// SetFailed sets the versions of the services of a policy or pattern that have failed on a node, whether that policy or pattern exists or not.
func (e *Engine) SetFailed(pair Pair, versions []edge.Failed) {
	if slices.Equal(e.failed[pair], versions) {
		return
	}
	e.failed[pair] = slices.Clone(versions)
	if len(versions) == 0 {
		delete(e.failed, pair)
	}
	if d, n := e.deployments[pair.Key], e.nodes[pair.Node]; d != nil && n != nil && d.namespace.nodes[n] > 0 {
		e.evaluate(d, n)
		e.assignPlaces()
	}
}

// assignPlaces assigns the places whose claims have changed.
func (e *Engine) assignPlaces() {
	for s := range e.crowded {
		delete(e.crowded, s)
		if len(s.claims) == 0 {
			if e.sites[s.place] == s {
				delete(e.sites, s.place)
			}
			continue
		}
		first := slices.MinFunc(s.claims, func(a, b *claim) int {
			return cmp.Or(a.Before(&b.Placement), cmp.Compare(a.service, b.service))
		})
		for _, c := range s.claims {
			if has := c == first; has != c.has {
				c.deployment.uncount(c.node)
				c.has = has
				c.deployment.count(c.node)
				e.pairs[c.pair()], e.keys[c.deployment.key] = true, true
			}
		}
	}
}
