// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	metrics "github.com/clusterhub/clusterhub/pkg/command/metrics/manager"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accessrequest"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/unattendedclusters"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeworks"
	"github.com/clusterhub/clusterhub/pkg/controllers/placements/placementscheduler"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clusteracceptance"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clusteravailability"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clustermetrics"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/controllers/sets/clustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/controllers/sets/clustersetstatus"
	"github.com/clusterhub/clusterhub/pkg/controllers/sets/defaultclusterset"
	"github.com/clusterhub/clusterhub/pkg/controllers/sets/managednamespaces"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/finishedworks"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/workevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// entry is a controller, and the processes that run it.
type entry struct {
	group string
	// on is false if the flags disable it in its group.
	on bool
	kit.Controller
}

// all returns all controllers, in the order in which they are set up. A new one is a line here.
func (c *controllers) all() []entry {
	r, a := &c.Registration, &c.Access
	registers, scheduling, asAgent := len(r.enabled()) > 0, c.scheduling, c.FeatureGate.Enabled(work.NilExecutorValidating)
	return []entry{
		{setsControllers, c.FeatureGate.Enabled(DefaultClusterSet), defaultclusterset.Controller()},
		{setsControllers, true, clustersetbinding.Controller()},
		{setsControllers, true, clustersetstatus.Controller()},
		{placementsControllers, true, placementscheduler.Controller()},
		{worksControllers, true, manifestworkreplicaset.Options{ChecksAgentExecutor: asAgent}.Controller()},
		{worksControllers, true, finishedworks.Controller()},
		{worksControllers, true, workevents.Controller()},
		{edgeControllers, true, edgeplacements.Controller()},
		{edgeControllers, true, edgeworks.Options{ChecksAgentExecutor: asAgent}.Controller()},
		// The controllers below need the index of clusterprotection.
		{accessControllers, true, clusterprotection.Controller()},
		{accessControllers, true, unattendedclusters.Controller()},
		{accessControllers, a.runs(schedulerController), clusterscheduler.Controller(scheduling)},
		{accessControllers, a.runs(accessRequestController), a.Requests.Controller(
			accessrequest.Options{Policy: scheduling.Policy, PolicyChanges: scheduling.Changes()})},
		{registrationControllers, registers, r.AgentRoles.Controller()},
		{registrationControllers, registers, c.acceptance()},
		{registrationControllers, registers, clusteravailability.Controller()},
		{registrationControllers, registers, clustermetrics.Controller(c.drivers)},
		{registrationControllers, registers, managednamespaces.Controller()},
		{registrationControllers, registers && r.Leftovers.TTL > 0, r.Leftovers.Controller()},
		{certificatesControllers, slices.Contains(r.enabled(), csr.Name), c.certificates()},
	}
}

func (c *controllers) acceptance() kit.Controller {
	controller := clusteracceptance.Options{
		Drivers: c.drivers, AutoApproval: c.FeatureGate.Enabled(ManagedClusterAutoApproval), AgentRoles: c.Registration.AgentRoles,
	}.Controller()
	for _, kind := range c.Registration.Kinds {
		controller.Rights = append(controller.Rights, kind.Rights()...)
	}
	return controller
}

func (c *controllers) certificates() kit.Controller {
	o, auto := c.Registration.Certificates, c.Registration.csr.AutoApproved
	o.BootstrapUsers, o.TrustedUsers = slices.Concat(o.BootstrapUsers, auto), auto
	return o.Controller()
}

// enabled returns the controllers of this process.
func (c *controllers) enabled() (enabled []kit.Controller) {
	for _, entry := range c.all() {
		if c.runs(entry.group) && entry.on {
			enabled = append(enabled, entry.Controller)
		}
	}
	return enabled
}

// Rights returns the permissions that a process with these flags needs, or with any others that select the same groups of controllers.
func (o *Options) Rights() (rights []kit.Right) {
	for _, entry := range (&controllers{Options: o}).all() {
		if o.runs(entry.group) {
			rights = append(rights, entry.Rights...)
		}
	}
	if operator := o.operator(&rest.Config{}); operator != nil {
		rights = append(rights, operator.rights()...)
	}
	for _, asked := range metrics.CreatedResources(o.Metrics) {
		rights = append(rights, kit.On(asked.GroupVersion(), asked.Resource, "create"))
	}
	elects := o.LeaderElection
	if elects.Enabled || o.beats() {
		rights = append(rights, kit.On(coordinationv1.SchemeGroupVersion, "leases", "create").In(elects.Namespace),
			kit.On(coordinationv1.SchemeGroupVersion, "leases", "get", "update").Named(elects.Name).In(elects.Namespace))
	}
	if elects.Enabled { // leader election records events of the older API
		rights = append(rights, kit.On(corev1.SchemeGroupVersion, "events", "create", "patch").In(elects.Namespace))
	}
	return rights
}
