// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// maker generates random parts of a small world, so that many of them interact.
type maker struct {
	*rand.Rand
	// pending are the reported changes that were not placed yet.
	pending map[Pair]bool
}

func (m maker) one(list ...string) string { return list[m.IntN(len(list))] }
func (m maker) some(all ...string) (list []string) {
	for _, one := range all {
		if m.IntN(3) == 0 {
			list = append(list, one)
		}
	}
	return list
}

func (m maker) term() string {
	switch m.IntN(6) {
	case 0:
		return "openhorizon.kubernetesNamespace == " + m.one("abc", "xyz")
	case 1:
		return "openhorizon.memory > " + m.one("1000", "3000")
	case 2:
		return "region in " + m.one(`"eu,us"`, `"eu"`)
	}
	return "purpose " + m.one("==", "==", "==", "!=") + " " + m.one("t", "u", "v")
}

func (m maker) constraints() []string {
	switch m.IntN(4) {
	case 0:
		return nil
	case 1:
		return []string{m.term(), m.term()}
	case 2:
		return []string{m.term() + " OR " + m.term()}
	}
	return []string{m.term()}
}

func (m maker) properties() (list []constraint.Property) {
	if m.IntN(4) > 0 {
		list = append(list, constraint.Property{Name: "purpose", Value: m.one("t", "u", "v", "t,u")})
	}
	if m.IntN(2) > 0 {
		list = append(list, constraint.Property{Name: "region", Value: m.one("eu", "us", "asia")})
	}
	return list
}

func (m maker) node(name string) edge.NodeSpec {
	spec := edge.NodeSpec{Name: name, Type: edge.Cluster, Policy: edge.Policy{Properties: m.properties()},
		Facts: edge.Facts{Arch: m.one("amd64", "amd64", "arm64", ""), Memory: int64(m.IntN(5) * 1000), Namespace: m.one("abc", "abc", "xyz", ""),
			Scope: edge.Scope(m.one("cluster", "namespace", "namespace", "")), ClusterID: m.one("", "c1", "c1", "c2")}}
	if m.IntN(5) == 0 {
		spec.Pattern = m.one("a/p1", "b/p2", "b/none")
	}
	if m.IntN(8) == 0 {
		spec.Type, spec.Facts.Scope, spec.Facts.Namespace = edge.Device, "", ""
	}
	if m.IntN(4) == 0 {
		spec.Policy.Constraints = []string{"tier == " + m.one("gold", "tin")}
	}
	if m.IntN(4) == 0 {
		spec.Facts.ClusterObjects = []archive.Object{{Group: "x.io", Kind: "Thing", Name: "one"}}
	}
	return spec
}

func (m maker) service(key ServiceKey, number string) edge.Service {
	s := edge.Service{Org: key.Org, Name: key.Name, Version: number, Arch: m.one("amd64", "amd64", "arm64", "*"), ForClusters: m.IntN(6) > 0, ForDevices: m.IntN(3) == 0,
		Contents: &archive.Contents{Namespaces: m.some("xyz")}}
	if m.IntN(3) == 0 {
		s.Contents.Objects = []archive.Object{{Group: "x.io", Kind: "Thing", Name: "one", Scope: archive.Cluster}}
	}
	if m.IntN(3) == 0 {
		s.Policy.Constraints = []string{m.term()}
	}
	return s
}

func (m maker) deployment(key Key) (specs []edge.DeploymentSpec) {
	count, name := 1, key.Namespace+"/"+key.Name
	if key.Pattern {
		count = 1 + m.IntN(2)
	}
	to := m.one("", "", "abc", "xyz")
	for range count {
		s := edge.DeploymentSpec{Name: name, Pattern: key.Pattern, Org: m.one("a", "b"), Service: m.one("s1", "s2"), ClusterNamespace: to, Arch: m.one("", "*", "amd64")}
		for i := range 1 + m.IntN(2) {
			s.Choices = append(s.Choices, edge.Choice{Version: fmt.Sprint(1+m.IntN(2), ".0.0"), Priority: i})
		}
		if !key.Pattern {
			s.Policy = edge.Policy{Constraints: m.constraints(), Properties: []constraint.Property{{Name: "tier", Value: m.one("gold", "tin")}}}
		}
		specs = append(specs, s)
	}
	return specs
}

// step changes one thing, in the world and in the engine, and describes it.
func (m maker) step(w *world, e *Engine) string {
	name := fmt.Sprint("n", m.IntN(12))
	switch m.IntN(15) {
	case 0:
		delete(w.nodes, name)
		e.DeleteNode(name)
		return "delete node"
	case 1, 2, 3:
		w.nodes[name] = m.node(name)
		if err := e.SetNode(w.nodes[name]); err != nil {
			panic(err)
		}
		return "node"
	case 4:
		spec, there := w.nodes[name]
		if !there {
			return "nothing"
		}
		switch m.IntN(3) {
		case 0:
			spec.Policy.Properties = m.properties()
		case 1:
			spec.Policy.Constraints = []string{"tier == " + m.one("gold", "tin")}
		case 2:
			spec.Facts.ClusterID = m.one("", "c1", "c1", "c2")
		}
		w.nodes[name] = spec
		if err := e.SetNode(spec); err != nil {
			panic(err)
		}
		return "one thing of a node"
	case 5:
		w.sets[name] = m.some("set1", "set2", "set3")
		e.SetSets(name, w.sets[name])
		return "sets"
	case 6, 7:
		ns, set := m.one("a", "b"), m.one("set1", "set2", "set3")
		if m.IntN(3) > 0 {
			w.bindings[[2]string{ns, set}] = true
			e.Bind(ns, set)
			return "bind"
		}
		delete(w.bindings, [2]string{ns, set})
		e.Unbind(ns, set)
		return "unbind"
	case 8, 9:
		key := ServiceKey{m.one("a", "b"), m.one("s1", "s2")}
		s := m.service(key, fmt.Sprint(1+m.IntN(2), ".0.0"))
		if m.IntN(3) == 0 {
			delete(w.services[key], version{s.Version, s.Arch})
			e.DeleteService(key, s.Version, s.Arch)
			return "withdraw"
		}
		if w.services[key] == nil {
			w.services[key] = map[version]edge.Service{}
		}
		w.services[key][version{s.Version, s.Arch}] = s
		e.SetService(s)
		return "service"
	case 10, 11:
		key := Key{m.one("a", "b"), m.IntN(3) == 0, m.one("p1", "p2")}
		if m.IntN(6) == 0 {
			delete(w.deployments, key)
			e.DeleteDeployment(key)
			return "delete deployment"
		}
		w.deployments[key] = m.deployment(key)
		if err := e.SetDeployment(key, w.deployments[key]); err != nil {
			panic(err)
		}
		return "deployment"
	case 12:
		pair := Pair{Key{Namespace: m.one("a", "b"), Pattern: len(w.failed)%2 == 1, Name: m.one("p1", "p2")}, name}
		delete(w.failed, pair)
		specs := w.deployments[pair.Key]
		for i, version := range m.some("1.0.0", "2.0.0") {
			one := edge.Failed{Org: "a", Service: "s1", Version: version}
			if len(specs) > 0 {
				of := specs[(len(w.failed)+i)%len(specs)]
				one.Org, one.Service = of.Org, of.Service
			}
			w.failed[pair] = append(w.failed[pair], one)
		}
		e.SetFailed(pair, w.failed[pair])
		return "failed"
	}
	// The desired services are placed, or sometimes different ones.
	for _, pair := range slices.SortedFunc(maps.Keys(m.pending), func(a, b Pair) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		what := e.Desired(pair)
		if m.IntN(10) == 0 {
			what = []Placed{{ServiceKey{"a", "s1"}, "1.0.0", "*", m.one("abc", "xyz")}}
		}
		w.placed[pair] = what
		if len(what) == 0 {
			delete(w.placed, pair)
		}
		e.SetPlaced(pair, what)
	}
	clear(m.pending)
	return "place"
}

// takeAway deletes everything of a world.
func (w *world) takeAway(e *Engine) {
	for key := range w.deployments {
		e.DeleteDeployment(key)
	}
	for name := range w.nodes {
		e.DeleteNode(name)
	}
	for name := range w.sets {
		e.SetSets(name, nil)
	}
	for binding := range w.bindings {
		e.Unbind(binding[0], binding[1])
	}
	for key, versions := range w.services {
		for v := range versions {
			e.DeleteService(key, v.version, v.arch)
		}
	}
	for pair := range w.placed {
		e.SetPlaced(pair, nil)
	}
	for pair := range w.failed {
		e.SetFailed(pair, nil)
	}
}
