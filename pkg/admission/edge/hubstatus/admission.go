// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubstatus restricts who may write the state of edge deployments: the facts of a node to its own agent, and EdgePlacements with their status
// to hub-controller-manager. RBAC would also allow it to admins.
package hubstatus

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "EdgeStatus"
	// Controllers is the user of hub-controller-manager, as in the policies of artifacts/deploy.
	Controllers = "system:serviceaccount:clusterhub-system:hub-controller-manager"
)

// Plugin rejects such changes by all other users, whatever their permissions. This includes the spec of an EdgePlacement. Deleting one is left to
// RBAC, since the garbage collector and the namespace controller do so.
type Plugin struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	what, err := guarded(a)
	if what == "" || err != nil {
		return err
	}
	who := a.GetUserInfo()
	if permission.Is(a, edge.Resource("edgenodes")) {
		if who != nil && ownAgent(who, a.GetName()) {
			return nil
		}
		return admission.NewForbidden(a, fmt.Errorf("%s is reported by its agent: only the agent of cluster %q writes it", what, a.GetName()))
	}
	if who != nil && who.GetName() == Controllers {
		return nil
	}
	return admission.NewForbidden(a, errors.New(what+" is only written by hub-controller-manager: change the DeploymentPolicy, DeploymentPattern or EdgeNode that it is computed from"))
}

func ownAgent(who user.Info, name string) bool {
	own, agent := registration.AgentCluster(who.GetName(), who.GetGroups())
	return agent && own == name && name != ""
}

// guarded returns the restricted part that a request changes, or "".
func guarded(a admission.Attributes) (string, error) {
	if n, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes")); n != nil || err != nil {
		if err == nil && !equality.Semantic.DeepEqual(n.Status, old.Status) {
			return "the status of an EdgeNode", nil
		}
		return "", err
	}
	if d, old, err := permission.Objects[edge.DeploymentPolicy](a, edge.Resource("deploymentpolicies")); d != nil || err != nil {
		if err == nil && !equality.Semantic.DeepEqual(d.Status, old.Status) {
			return "the status of a DeploymentPolicy", nil
		}
		return "", err
	}
	if d, old, err := permission.Objects[edge.DeploymentPattern](a, edge.Resource("deploymentpatterns")); d != nil || err != nil {
		if err == nil && !equality.Semantic.DeepEqual(d.Status, old.Status) {
			return "the status of a DeploymentPattern", nil
		}
		return "", err
	}
	e, old, err := permission.Objects[edge.EdgePlacement](a, edge.Resource("edgeplacements"))
	switch {
	case e == nil:
		return "", err
	case a.GetOperation() == admission.Create, !equality.Semantic.DeepEqual(e.Spec, old.Spec):
		return "an EdgePlacement", nil
	case !equality.Semantic.DeepEqual(e.Status, old.Status):
		return "the status of an EdgePlacement", nil
	}
	return "", nil
}
