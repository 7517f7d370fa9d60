// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentworks limits what the agents of clusters may change in the works of their cluster: their finalizer, and the status. They need
// permission to update works for the finalizer, and RBAC cannot limit that to a field.
package agentworks

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManifestWorkAgentRestriction"

// Plugin rejects changes that no agent makes.
type Plugin struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[work.ManifestWork](a, work.Resource("manifestworks"))
	if updated == nil {
		return err
	}
	if user := a.GetUserInfo(); user == nil || !registration.IsAgent(user.GetName(), user.GetGroups(), a.GetNamespace()) {
		return nil
	}
	if a.GetOperation() == admission.Create {
		return admission.NewForbidden(a, errors.New("an agent of a cluster may not create works: it applies them"))
	}
	var what []string
	for field, same := range map[string]bool{
		"metadata.annotations":     equality.Semantic.DeepEqual(updated.Annotations, old.Annotations),
		"metadata.finalizers":      slices.Equal(others(updated), others(old)),
		"metadata.labels":          equality.Semantic.DeepEqual(updated.Labels, old.Labels),
		"metadata.ownerReferences": equality.Semantic.DeepEqual(updated.OwnerReferences, old.OwnerReferences),
		"spec":                     equality.Semantic.DeepEqual(updated.Spec, old.Spec),
	} {
		if !same {
			what = append(what, field)
		}
	}
	if len(what) == 0 {
		return nil
	}
	slices.Sort(what)
	return admission.NewForbidden(a, errors.New("an agent of a cluster can change the finalizer "+work.ManifestWorkFinalizer+
		" and the status of a work, but cannot change "+strings.Join(what, " and ")+": send them unchanged"))
}

// others returns the finalizers that are not the agent's, sorted.
func others(w *work.ManifestWork) []string {
	rest := slices.DeleteFunc(slices.Clone(w.Finalizers), func(f string) bool { return f == work.ManifestWorkFinalizer })
	slices.Sort(rest)
	return rest
}
