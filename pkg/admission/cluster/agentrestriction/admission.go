// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentrestriction limits what the agents of a cluster may change in its ManagedCluster: RBAC can only allow them to change all of it.
package agentrestriction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "AgentRestriction"

// Plugin rejects changes that no agent makes, and keeps agents from changing the annotations that the hub relies on.
type Plugin struct {
	*admission.Handler
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Update)} }

// Admit implements admission.MutationInterface. It does not reject, because an agent of an older release reports its new key in a write that has
// other changes: the key is admitted, and the agent gets a warning.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := clusters(a)
	if updated == nil {
		return err
	}
	var kept []string
	annotations := maps.Clone(updated.Annotations)
	for _, from := range []map[string]string{old.Annotations, updated.Annotations} {
		for key := range from {
			was, had := old.Annotations[key]
			is, has := annotations[key]
			if !registration.IsHubAnnotation(key) || had == has && was == is {
				continue
			}
			kept = append(kept, key)
			if !had {
				delete(annotations, key)
				continue
			}
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = was
		}
	}
	if len(kept) > 0 {
		slices.Sort(kept)
		updated.Annotations = annotations
		warning.AddWarning(ctx, "", fmt.Sprintf("the annotations %s were not changed: the hub relies on them, so an agent cannot "+
			"change them", strings.Join(kept, ", ")))
	}
	return nil
}

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := clusters(a)
	if updated == nil {
		return err
	}
	var what []string
	for field, same := range map[string]bool{
		"metadata.ownerReferences": equality.Semantic.DeepEqual(updated.OwnerReferences, old.OwnerReferences),
		"metadata.finalizers":      equality.Semantic.DeepEqual(updated.Finalizers, old.Finalizers),
		"spec.taints":              equality.Semantic.DeepEqual(updated.Spec.Taints, old.Spec.Taints),
	} {
		if !same {
			what = append(what, field)
		}
	}
	if len(what) == 0 {
		return nil
	}
	slices.Sort(what)
	return admission.NewForbidden(a, errors.New("an agent of a cluster cannot change "+strings.Join(what, " and ")+
		": send them unchanged"))
}

// clusters returns the cluster that its agent writes, and the old object. It returns nil for other requests.
func clusters(a admission.Attributes) (updated, old *cluster.ManagedCluster, err error) {
	updated, old, err = permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if updated == nil {
		return nil, nil, err
	}
	if user := a.GetUserInfo(); !registration.IsAgent(user.GetName(), user.GetGroups(), a.GetName()) {
		return nil, nil, nil
	}
	return updated, old, nil
}
