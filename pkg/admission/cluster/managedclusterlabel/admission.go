// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclusterlabel guards the reserved labels, which add clusters to sets: each needs a permission of its own. Admission checks it,
// because every write of a cluster passes through here.
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
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterLabel"

// maxChanges bounds the number of authorization checks for one request.
const maxChanges = 64

// Plugin rejects changes of reserved labels by users without permission.
type Plugin struct {
	permission.Guard
	// defaultIsNone reports whether a cluster without a set is in the set default. A move between that and another set requires the permission on the
	// other set only.
	defaultIsNone bool
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsFeatures     = &Plugin{}
)

// New returns the plugin. It needs an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// InspectFeatureGates implements initializer.WantsFeatures.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.defaultIsNone = gates.Enabled(cluster.DefaultSetFeature)
}

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
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

// held returns the rule by which the user may make a change, or nil. The error reports that the authorizer failed.
func (p *Plugin) held(ctx context.Context, a admission.Attributes, c reservedLabelChange) (*rbac.Permission, error) {
	rules := []rbac.Permission{labelRule(c.key + ":" + c.value), labelRule(c.key + ":*"), labelRule("*")}
	if c.key == cluster.ClusterSetLabel {
		// Permission (name: the set): a label `cluster.open-cluster-management.io/clusterset` is added, changed or removed. Deprecated: the permission on the label is sufficient.
		rules = append(rules, rbac.Permission{
			Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "join", Name: c.value,
		})
	}
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), rules...)
	if held != nil && held.Subresource == "join" {
		warning.AddWarning(ctx, "", fmt.Sprintf("the RBAC rule %s is deprecated: use %s", held, rules[0]))
	}
	return held, err
}

func labelRule(name string) rbac.Permission {
	// Permission (name: `K:V`, `K:*` or `*`): a label `K: V` with a reserved prefix is added, changed or removed. Between a set and the set `default`, the permission for the set is sufficient.
	return rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label", Name: name}
}

// reservedLabelChange is a reserved label that is added or removed.
type reservedLabelChange struct {
	verb, key, value string
}

func (c reservedLabelChange) String() string {
	return fmt.Sprintf("%s the label %s=%s", c.verb, c.key, c.value)
}

// changes returns the reserved labels that differ, ordered by key. For a changed value, the removal comes first.
func changes(before, after map[string]string) []reservedLabelChange {
	var result []reservedLabelChange
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
			result = append(result, reservedLabelChange{"remove", key, was})
		}
		if has {
			result = append(result, reservedLabelChange{"add", key, is})
		}
	}
	return result
}

// withoutDefault omits the change of the set default when a cluster moves between it and another set: the permission on that other set, which remains
// among the changes, is enough. It omits nothing if there is no other set, as with a new cluster.
func withoutDefault(moved []reservedLabelChange) []reservedLabelChange {
	isOf := func(c reservedLabelChange, isDefault bool) bool {
		return c.key == cluster.ClusterSetLabel && c.value != "" && (c.value == cluster.DefaultSet) == isDefault
	}
	if !slices.ContainsFunc(moved, func(c reservedLabelChange) bool { return isOf(c, false) }) {
		return moved
	}
	return slices.DeleteFunc(moved, func(c reservedLabelChange) bool { return isOf(c, true) })
}
