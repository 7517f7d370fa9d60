// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentlabelrate limits how often the agents of a cluster change its labels. Each change can move the cluster to other sets, and causes work
// for all controllers that depend on sets. Other writes of agents, such as the status, have a limit of their own (agentrate).
package agentlabelrate

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "AgentLabelRate"

// Plugin rejects changes of labels that are too frequent.
type Plugin struct {
	*admission.Handler
	// Changes counts them.
	Changes *agentlimit.Limiter
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
)

// New returns the plugin. It needs a limiter.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Update)} }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.Changes == nil {
		return errors.New(PluginName + " needs a limit")
	}
	return nil
}

// Validate implements admission.ValidationInterface. It checks every subresource, and also labels without a reserved prefix: sets may select by any
// label.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if updated == nil {
		return err
	}
	who := a.GetUserInfo()
	if a.IsDryRun() || maps.Equal(updated.Labels, old.Labels) || !registration.IsAgent(who.GetName(), who.GetGroups(), a.GetName()) ||
		p.Changes.Accept(a.GetName()) {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("the agents of cluster %s change its labels more than %g times a second (and %d times at once), "+
		"so nothing of this request was written: try again later. Requests that change no labels are accepted",
		a.GetName(), p.Changes.PerSecond, p.Changes.Burst), p.Changes.Wait())
}
