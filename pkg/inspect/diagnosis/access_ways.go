// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Target is the subject of a question about access.
type Target struct {
	// One of these is set: a label KEY=VALUE, or the name of a set or a cluster.
	Label, Set, Cluster string
	// Subresource of the set or cluster, such as clusters or finalizers.
	Subresource string
	// Namespace is the namespace to bind a set to.
	Namespace string
	// SetsOf are the sets of the cluster that the user may see.
	SetsOf []string
}

// String describes the target.
func (t Target) String() string {
	text := ""
	switch {
	case t.Label != "":
		text = "the label " + t.Label + " of clusters that the user may change"
	case t.Set != "":
		text = "the set " + t.Set
	default:
		text = "the cluster " + t.Cluster
	}
	if t.Subresource != "" {
		text = t.Subresource + " of " + text
	}
	return text
}

// A Need is a permission that has several spellings: one of them is enough.
type Need struct {
	// Name is a short description of the permission.
	Name string
	Any  []rbac.Permission
}

// An AccessWay is one way to be allowed to do something: all needs must be met.
type AccessWay struct {
	Name  string
	Needs []Need
	// Role and Set are the arguments of kubectl hub grant for this way, or empty.
	Role, Set string
}

// These verbs are not verbs of RBAC.
const (
	verbWrite   = "write"
	verbAccept  = "accept"
	verbLeave   = "leave"
	verbBind    = "bind"
	verbDeliver = "deliver"
)

// AccessVerbs returns the verbs for questions about a label, a set or a cluster.
func AccessVerbs(t Target) []string {
	switch {
	case t.Label != "":
		return []string{verbWrite}
	case t.Set != "":
		return []string{"get", "update", "patch", "delete", verbBind, verbDeliver}
	}
	return []string{"get", "update", "patch", "delete", verbAccept, verbLeave, verbDeliver}
}

// Ways returns the ways to be allowed to do something, the simplest first. docs/permissions.md describes them.
func Ways(verb string, t Target) ([]AccessWay, error) {
	if t.Label != "" {
		if !slices.Contains([]string{verbWrite, "label", "set", "create", "update"}, verb) {
			return nil, fmt.Errorf("the verb for a label must be %s, not %q", verbWrite, verb)
		}
		return labelWays(t.Label)
	}
	plain := slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete"}, verb)
	p := rbac.Permission{Verb: verb, Group: cluster.GroupName, Resource: "managedclusters", Subresource: t.Subresource, Name: t.Cluster}
	if t.Set != "" {
		p.Resource, p.Name = "managedclustersets", t.Set
	}
	switch {
	case t.Subresource != "":
		return []AccessWay{one(p)}, nil
	case t.Set != "" && verb == verbBind:
		return []AccessWay{bindWay(p, t)}, nil
	case t.Set != "" && verb == verbDeliver:
		p.Verb, p.Subresource = "create", "manifestworks"
		return []AccessWay{works(""), one(p)}, nil
	case t.Set != "" && plain:
		return []AccessWay{withRole(one(p), setRole(verb), t.Set)}, nil
	case t.Set == "" && verb == verbAccept, t.Set == "" && verb == verbLeave:
		p.Verb, p.Subresource = "update", verb
		need := Need{Name: p.Short(), Any: []rbac.Permission{p}}
		if verb == verbAccept {
			other := p
			other.Group = registration.RegisterGroup
			need.Any = append(need.Any, other)
		}
		return []AccessWay{{Name: "by the name of the cluster", Needs: []Need{need}}}, nil
	case t.Set == "" && verb == verbDeliver:
		return []AccessWay{works(t.Cluster), works("")}, nil
	case t.Set == "" && plain:
		return clusterWays(p, t), nil
	}
	return nil, fmt.Errorf("verb %q is not supported for %s: use one of %s", verb, t, strings.Join(AccessVerbs(t), ", "))
}

func one(p rbac.Permission) AccessWay {
	return AccessWay{Name: "by name", Needs: []Need{{p.Short(), []rbac.Permission{p}}}}
}

func withRole(w AccessWay, role, set string) AccessWay {
	w.Role, w.Set = role, set
	if role == "" {
		w.Set = ""
	}
	return w
}

// setRole returns the role of a set that has a verb on the set itself.
func setRole(verb string) string {
	if verb == "get" {
		return "viewer"
	}
	return ""
}

func works(namespace string) AccessWay {
	p := rbac.Permission{Verb: "create", Group: work.GroupName, Resource: "manifestworks", Namespace: namespace}
	name := "in all namespaces"
	if namespace != "" {
		name = "in the namespace of the cluster"
	}
	return AccessWay{Name: name, Needs: []Need{{p.Short(), []rbac.Permission{p}}}}
}

func bindWay(p rbac.Permission, t Target) AccessWay {
	get := p
	get.Verb = "get"
	p.Verb, p.Subresource = "create", verbBind
	w := AccessWay{Name: "by the name of the set", Role: "user", Set: t.Set, Needs: []Need{{get.Short(), []rbac.Permission{get}}, {p.Short(), []rbac.Permission{p}}}}
	if t.Namespace != "" {
		binding := rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclustersetbindings", Namespace: t.Namespace}
		w.Needs = append(w.Needs, Need{binding.Short(), []rbac.Permission{binding}})
	}
	return w
}

// clusterWays returns the way by the name of the cluster, and one for each set that it is in.
func clusterWays(p rbac.Permission, t Target) []AccessWay {
	ways := []AccessWay{{Name: "by the name of the cluster", Needs: []Need{{p.Short(), []rbac.Permission{p}}}}}
	for _, set := range t.SetsOf {
		get := rbac.Permission{Verb: "get", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "clusters", Name: set}
		way := AccessWay{Name: "by the set " + set, Set: set, Role: "viewer", Needs: []Need{{get.Short(), []rbac.Permission{get}}}}
		if p.Verb != "get" && p.Verb != "list" && p.Verb != "watch" {
			verb := get
			verb.Verb = p.Verb
			way.Needs, way.Role = append(way.Needs, Need{verb.Short(), []rbac.Permission{verb}}), "admin"
		}
		ways = append(ways, way)
	}
	return ways
}

// maxWays is the largest number of ways in an answer.
const maxWays = 10

// AddMoves adds the ways to write the label of the set default by a permission on another set: if that set exists, clusters move between the two with
// the permission on the other one alone. The other sets are those of the user's rules, as far as they may be read.
func (f *AccessFacts) AddMoves() {
	if !f.Target.isDefault() {
		return
	}
	key, groups := cluster.ClusterSetLabel+":", GroupsOf(f.User, f.Groups)
	p := rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label"}
	for _, name := range f.Rules.names(p, f.User, groups) {
		other, ok := strings.CutPrefix(name, key)
		if !ok || other == "" || other == "*" || other == cluster.DefaultSet {
			continue
		}
		if len(f.Ways) == maxWays {
			break // each needs a review by the front
		}
		p.Name = name
		f.Ways = append(f.Ways, AccessWay{Name: "for clusters that move between default and the set " + other, Needs: []Need{{p.Short(), []rbac.Permission{p}}}})
	}
}

// isDefault reports whether the target is the label of the set default.
func (t Target) isDefault() bool { return t.Label == cluster.ClusterSetLabel+"="+cluster.DefaultSet }

// labelWays returns the ways to write a label. Labels that the hub does not reserve need only the permission to write the cluster.
func labelWays(label string) ([]AccessWay, error) {
	key, value, ok := strings.Cut(label, "=")
	if !ok || key == "" {
		return nil, errors.New("a label must have the form KEY=VALUE")
	}
	if !cluster.IsReservedLabel(key) {
		p := rbac.Permission{Verb: "update", Group: cluster.GroupName, Resource: "managedclusters"}
		return []AccessWay{{Name: "on all clusters", Needs: []Need{{p.Short(), []rbac.Permission{p}}}}}, nil
	}
	p := rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label"}
	need := Need{Name: p.Short() + " " + key + ":" + value}
	for _, name := range []string{key + ":" + value, key + ":*", "*"} {
		p.Name = name
		need.Any = append(need.Any, p)
	}
	ways := []AccessWay{{Name: "by the label", Needs: []Need{need}}}
	if key == cluster.ClusterSetLabel && value != "" {
		join := rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "join", Name: value}
		ways = append(ways, one(join))
	}
	return ways, nil
}
