// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectsize limits the size of an object in etcd.
package objectsize

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ObjectSize"
	// Limit is the largest size of an object in bytes, including managedFields.
	Limit = 256 << 10
	// WorkLimit is the limit for works, which contain other objects: 512000 bytes of these, and a status for each.
	WorkLimit = 1280 << 10
	// ServiceLimit is the limit for edge services: an archive of 512000 bytes in base64, and the other fields of a service.
	ServiceLimit = 1024 << 10
	// Reserve is the size that users with permission to finalize the object may add. Without it, a user who fills an object could prevent the hub from denying
	// a cluster, or a provider from revoking access. It is also the room below the limit that agents of a cluster must leave to other users, so that
	// they cannot prevent a team from labeling or tainting the cluster.
	Reserve = 64 << 10
)

// StatusReserve is the room below the limit that a Placement must leave to its status: the scheduler writes the decisions to it, and otherwise could not
// even report that there is no room.
const StatusReserve = 176 << 10

// Sizer returns the size in bytes of a stored object of a resource.
type Sizer func(resource schema.GroupResource, object runtime.Object) (int, error)

// Plugin rejects objects that are too large. An object that was stored before there was a limit, even beyond the reserve, may be changed as long as
// it does not grow. An object in the reserve must shrink below the limit, unless its user may write there. Every object may be deleted: the plugin
// does not see deletions.
type Plugin struct {
	permission.Guard
	size Sizer
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer.
func New(size Sizer) *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update), size: size}
}

// Validate implements admission.ValidationInterface. It checks every subresource: the whole object is stored.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, _, ok := permission.Stored(a)
	if !ok {
		return nil
	}
	resource := a.GetResource().GroupResource()
	size, err := p.size(resource, a.GetObject())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
	}
	if err := p.checkStatusReserve(a); err != nil {
		return err
	}
	most := Limit
	switch {
	case resource.Group == work.GroupName:
		most = WorkLimit
	case resource == edge.Resource("edgeservices"):
		most = ServiceLimit
	}
	limit := most
	if reservesStatus(a) {
		limit -= Reserve
	}
	if size <= limit {
		return nil
	}
	shrinks := false
	if a.GetOperation() == admission.Update {
		before, err := p.size(resource, a.GetOldObject())
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
		}
		shrinks = size <= before
		// What other users have written to their share does not limit an agent.
		if shrinks && size <= most {
			return nil
		}
		// This excludes objects in the reserve: otherwise the user who filled the object could repeatedly replace what the hub has written there,
		// until nothing of the reserve is left.
		if shrinks && (before > most+Reserve || updated.GetDeletionTimestamp() != nil) {
			return nil
		}
	}
	if shrinks || size <= most+Reserve {
		// Permission: an object grows above its limit, into the room that is reserved for the hub, or stays there.
		if excused, _ := p.Excused(ctx, a, hubfinalizers.Rules(a)...); excused {
			return nil
		}
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"%s %q would take %d bytes in etcd, and the limit is %d: make its metadata, spec or status smaller",
		resource, a.GetName(), size, limit))
}

// reservesStatus reports whether a request must leave room to others: an agent of a cluster writes the cluster, or a cluster is created, as agents do
// before they have their own identity.
func reservesStatus(a admission.Attributes) bool {
	if !permission.Is(a, cluster.Resource("managedclusters")) {
		return false
	}
	who := a.GetUserInfo()
	return a.GetOperation() == admission.Create || who == nil || registration.IsAgent(who.GetName(), who.GetGroups(), a.GetName())
}

// checkStatusReserve rejects a Placement that is too large without its status, unless it was as large before.
func (p *Plugin) checkStatusReserve(a admission.Attributes) error {
	now, before, err := permission.Objects[cluster.Placement](a, cluster.Resource("placements"))
	if now == nil || err != nil || a.GetSubresource() != "" {
		return err
	}
	var sizes [2]int
	for i, one := range []*cluster.Placement{now, before} {
		without := *one
		without.Status = cluster.PlacementStatus{}
		sizes[i], err = p.size(a.GetResource().GroupResource(), &without)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
		}
	}
	if sizes[0] <= max(Limit-StatusReserve, sizes[1]) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"placements %q would take %d bytes in etcd without its status, and the limit is %d: use fewer or shorter predicates, or less metadata",
		a.GetName(), sizes[0], Limit-StatusReserve))
}
