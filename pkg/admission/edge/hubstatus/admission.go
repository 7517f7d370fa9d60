// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubstatus keeps what is said of edge deployments with those who know it: the facts of a node with its own agent, what was placed
// and what came of it with hub-controller-manager. RBAC would let admins write them as well.
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
	// Controllers is the user that hub-controller-manager is, as the policies of artifacts/deploy have it.
	Controllers = "system:serviceaccount:clusterhub-system:hub-controller-manager"
)

// Plugin refuses such changes to all others, whatever their rights are. What is in a placement also has to be its spec: deleting one is left
// to RBAC, since garbage collection and the end of a namespace do so.
type Plugin struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Validate implements admission.ValidationInterface. It looks at every subresource: what changes counts, not the path by which.
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
		return admission.NewForbidden(a, fmt.Errorf("%s is what its agent sees: only the agent of cluster %q writes it", what, a.GetName()))
	}
	if who != nil && who.GetName() == Controllers {
		return nil
	}
	return admission.NewForbidden(a, errors.New(what+" is written by hub-controller-manager alone: change the DeploymentPolicy, DeploymentPattern or EdgeNode that it follows from"))
}

func ownAgent(who user.Info, name string) bool {
	own, agent := registration.AgentCluster(who.GetName(), who.GetGroups())
	return agent && own == name && name != ""
}

// guarded is what a request changes that is not for all, or empty.
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
