// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclusterlabel guards the reserved labels, by which clusters come into sets: each needs a permission of its own.
// Admission asks for it, because every write of a cluster comes by here.
package managedclusterlabel

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-base/featuregate"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterLabel"

// maxChanges bounds what one request makes the front be asked for.
const maxChanges = 64

// Plugin refuses changes of reserved labels by users who do not hold them.
type Plugin struct {
	permission.Guard
	// defaultIsNone reports whether a cluster without a set is in the set default. A move between that and another set requires the right to the other set only.
	defaultIsNone bool
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsFeatures     = &Plugin{}
)

// New returns the plugin, to be given an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// InspectFeatureGates implements initializer.WantsFeatures.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.defaultIsNone = gates.Enabled(cluster.DefaultSetFeature)
}

// Validate implements admission.ValidationInterface. It looks at every subresource: what changes counts, not the path
// by which.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if updated == nil {
		return err
	}
	moved := changes(old.Labels, updated.Labels)
	if p.defaultIsNone {
		moved = withoutDefault(moved)
	}
	if len(moved) > maxChanges {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.labels: the request adds or removes %d reserved labels, and the "+
			"limit is %d: split it into several requests", len(moved), maxChanges))
	}
	decision := p.Decide(a)
	for i, change := range moved {
		if decision.Enough() {
			decision.Unseen(len(moved) - i)
			break
		}
		if held, err := p.held(ctx, a, change); held != nil {
			decision.Uses(*held)
		} else {
			decision.Lacks(change.String(), labelRule(change.key+":"+change.value), err)
		}
	}
	return decision.End(ctx)
}

// held is the rule by which the user may make a change, or nil; the error says why the authorizer could not be asked.
func (p *Plugin) held(ctx context.Context, a admission.Attributes, c change) (*permission.Rule, error) {
	rules := []permission.Rule{labelRule(c.key + ":" + c.value), labelRule(c.key + ":*"), labelRule("*")}
	if c.key == cluster.ClusterSetLabel {
		// Permission (name: the set): a label `cluster.open-cluster-management.io/clusterset` is added, changed or removed. Deprecated: that on the label is enough.
		rules = append(rules, permission.Rule{
			Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "join", Name: c.value,
		})
	}
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), rules...)
	if held != nil && held.Subresource == "join" {
		warning.AddWarning(ctx, "", fmt.Sprintf("the RBAC rule %s is deprecated: use %s", held, rules[0]))
	}
	return held, err
}

func labelRule(name string) permission.Rule {
	// Permission (name: `K:V`, `K:*` or `*`): a label `K: V` with a reserved prefix is added, changed or removed. Between a set and the set `default`, that of the set is enough.
	return permission.Rule{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label", Name: name}
}

// change is a reserved label that comes or goes.
type change struct {
	verb, key, value string
}

func (c change) String() string { return fmt.Sprintf("%s the label %s=%s", c.verb, c.key, c.value) }

// changes lists the reserved labels that differ, ordered by key; of a changed value, the one that goes comes first.
func changes(before, after map[string]string) []change {
	var result []change
	keys := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if !cluster.IsReservedLabel(key) {
			continue
		}
		was, had := before[key]
		is, has := after[key]
		if had && has && was == is {
			continue
		}
		if had {
			result = append(result, change{"remove", key, was})
		}
		if has {
			result = append(result, change{"add", key, is})
		}
	}
	return result
}

// withoutDefault leaves out that a cluster leaves the set default for another set, or comes into it from one: the right to that other set, which
// remains among the changes, is enough. Without another set, as at a cluster that is made, nothing is left out.
func withoutDefault(moved []change) []change {
	isOf := func(c change, isDefault bool) bool {
		return c.key == cluster.ClusterSetLabel && c.value != "" && (c.value == cluster.DefaultSet) == isDefault
	}
	if !slices.ContainsFunc(moved, func(c change) bool { return isOf(c, false) }) {
		return moved
	}
	return slices.DeleteFunc(moved, func(c change) bool { return isOf(c, true) })
}
