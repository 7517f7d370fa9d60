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
	"k8s.io/apiserver/pkg/warning"

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
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, to be given an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface. It looks at every subresource: what changes counts, not the path
// by which.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if updated == nil {
		return err
	}
	moved := changes(old.Labels, updated.Labels)
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
	// Permission (name: `K:V`, `K:*` or `*`): a label `K: V` with a reserved prefix is added, changed or removed.
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
