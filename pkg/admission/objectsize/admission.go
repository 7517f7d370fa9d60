// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectsize bounds what one object takes of etcd.
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
	// Limit is how many bytes an object may take, the record of who manages which field included.
	Limit = 256 << 10
	// WorkLimit is that of works, which have other objects in them: 512000 bytes of these, and a status for each.
	WorkLimit = 1280 << 10
	// ServiceLimit is that of edge services: an archive of 512000 bytes in base64, and what else a service has.
	ServiceLimit = 1024 << 10
	// Reserve is what users with the right to the object's end may add. Without it, a user who fills an object could keep
	// the hub from denying a cluster, or a provider from taking access back. It is also what a cluster's agents leave to
	// others below the limit, so that they cannot keep a team from labelling or tainting the cluster.
	Reserve = 64 << 10
)

// StatusRoom is what a Placement leaves to its status below the limit: the scheduler writes there which decisions there are, and it could
// not even say that there is no room.
const StatusRoom = 176 << 10

// Sizer tells how many bytes an object of a resource takes when it is stored.
type Sizer func(resource schema.GroupResource, object runtime.Object) (int, error)

// Plugin refuses objects that are too large. An object that was stored before there was a limit, beyond the reserve too, may
// be changed as long as it does not grow. An object in the reserve has to come back below the limit, unless its user may
// write there. Every object may be deleted: deletions do not come by here.
type Plugin struct {
	permission.Guard
	size Sizer
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, to be given an authorizer.
func New(size Sizer) *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update), size: size}
}

// Validate implements admission.ValidationInterface. It looks at every subresource: the whole object is stored.
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
	if err := p.leavesRoomToStatus(a); err != nil {
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
	if leavesRoom(a) {
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
		// What others have put into their share does not hold an agent back.
		if shrinks && size <= most {
			return nil
		}
		// Not what reaches into the reserve: else the user who filled the object could replace what the hub has written
		// there, time and again, until nothing of the reserve is left.
		if shrinks && (before > most+Reserve || updated.GetDeletionTimestamp() != nil) {
			return nil
		}
	}
	if shrinks || size <= most+Reserve {
		// Permission: an object becomes larger than its bound, within what is kept for the hub above it, or stays larger.
		if excused, _ := p.Excused(ctx, a, hubfinalizers.Rules(a)...); excused {
			return nil
		}
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"%s %q would take %d bytes in etcd, and the limit is %d: make its metadata, spec or status smaller",
		resource, a.GetName(), size, limit))
}

// leavesRoom says whether a request is of those that leave room to others: an agent of a cluster writes the cluster, or one is
// made, as agents do before they are known by their name.
func leavesRoom(a admission.Attributes) bool {
	if !permission.Is(a, cluster.Resource("managedclusters")) {
		return false
	}
	who := a.GetUserInfo()
	return a.GetOperation() == admission.Create || who == nil || registration.IsAgent(who.GetName(), who.GetGroups(), a.GetName())
}

// leavesRoomToStatus refuses a Placement that is too large without its status, unless it was as large before.
func (p *Plugin) leavesRoomToStatus(a admission.Attributes) error {
	now, before, err := permission.Objects[cluster.Placement](a, cluster.Resource("placements"))
	if now == nil || err != nil || a.GetSubresource() != "" {
		return err
	}
	var sizes [2]int
	for i, one := range []*cluster.Placement{now, before} {
		without := *one
		without.Status = cluster.PlacementStatus{}
		if sizes[i], err = p.size(a.GetResource().GroupResource(), &without); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
		}
	}
	if sizes[0] <= max(Limit-StatusRoom, sizes[1]) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"placements %q would take %d bytes in etcd without its status, and the limit is %d: use fewer or shorter predicates, or less metadata",
		a.GetName(), sizes[0], Limit-StatusRoom))
}
