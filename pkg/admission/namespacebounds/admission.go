// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacebounds limits the number of objects of all kinds in a namespace, and their size in etcd, so that an admin of a namespace cannot
// fill etcd for all others.
package namespacebounds

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "NamespaceBounds"
	// DefaultObjects is the default for the largest number of objects in a namespace. A placement of 10,000 clusters has 100 decisions, and a
	// deployment policy of 10,000 nodes has an EdgePlacement for each.
	DefaultObjects = 200_000
	// DefaultBytes is the default for their size in bytes: an eighth of the default size of an embedded etcd.
	DefaultBytes = 1 << 30
	// inFlightBytes is the largest number of bytes that all concurrent updates of a server could add: 200 updates of an object of 1,280 KiB.
	inFlightBytes = 256 << 20
	// slack is by how many bytes an update may grow an object if it only changes finalizers, owners or managed fields.
	slack = 4096
)

// Plugin rejects writes that make a namespace exceed its bounds, for all users. It admits all writes that do not grow an object, and does not
// see deletions.
//
// A quarter beyond the bounds is reserved for writes that a full namespace must not prevent: statuses, objects that are being deleted, finalizers,
// and what the hub itself derives from the objects of a namespace. Users who may write the rest cannot write any of these without limit.
type Plugin struct {
	*admission.Handler
	// MaxObjects and MaxBytes are the bounds of a namespace. 0 means no bound.
	MaxObjects, MaxBytes int
	// Usage counts the objects in namespaces.
	Usage *Usage
}

var _ admission.ValidationInterface = &Plugin{}

// derived are the resources that hub-controller-manager writes into namespaces of users.
var derived = map[schema.GroupResource]bool{
	cluster.Resource("placementdecisions"):           true,
	edge.Resource("edgeplacements"):                  true,
	work.Resource("manifestworkreplicasetrevisions"): true,
}

// New returns the plugin. Its Usage must count the objects of the hub.
func New(size objectsize.Sizer, c clock.PassiveClock) *Plugin {
	p := &Plugin{
		Handler:    admission.NewHandler(admission.Create, admission.Update),
		MaxObjects: DefaultObjects, MaxBytes: DefaultBytes, Usage: NewUsage(size, c),
	}
	p.SetReadyFunc(p.Usage.ready)
	return p
}

// Validate implements admission.ValidationInterface. It checks every subresource: the whole object is stored.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, ok := permission.Stored(a)
	most := Amount{p.MaxObjects, p.MaxBytes}
	if !ok || a.GetNamespace() == "" || most == (Amount{}) {
		return nil
	}
	resource := a.GetResource().GroupResource()
	// A server that has just started counts for a moment.
	if !p.WaitForReady() || !p.Usage.Counts(resource) {
		return apierrors.NewServiceUnavailable(PluginName + ": the server has not counted all objects yet: try again in a few seconds")
	}
	isNew, reserve := a.GetOperation() == admission.Create, most.andAQuarter()
	if !isNew && (most.Bytes == 0 || p.Usage.fits(a.GetNamespace(), inFlightBytes, most.Bytes)) {
		return nil // without measuring it
	}
	size, err := p.Usage.size(resource, a.GetObject())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
	}
	if a.GetSubresource() != "" || old.GetDeletionTimestamp() != nil || derived[resource] {
		most = reserve
	}
	k := key{resource, updated.GetName()}
	used, more, ok := p.Usage.admit(a.GetNamespace(), k, size, isNew, most, a.IsDryRun())
	if !ok && !isNew {
		// The count may be older than the stored object.
		before, err := p.Usage.size(resource, a.GetOldObject())
		switch {
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
		case size <= before:
			return nil
		case size <= before+slack && onlyHeld(updated, old):
			most = reserve
			used, more, ok = p.Usage.admit(a.GetNamespace(), k, size, false, most, a.IsDryRun())
		}
	}
	if ok {
		return nil
	}
	return admission.NewForbidden(a, most.exceeded(used, more))
}

// andAQuarter returns the bounds with the reserve.
func (m Amount) andAQuarter() Amount { return Amount{m.Objects + m.Objects/4, m.Bytes + m.Bytes/4} }

// exceeded returns an error like that of a ResourceQuota.
func (m Amount) exceeded(used, more Amount) error {
	flag, of, amount := "--max-bytes-per-namespace", "bytes", func(a Amount) int { return a.Bytes }
	if more.Objects > 0 && m.Objects > 0 && used.Objects+more.Objects > m.Objects {
		flag, of, amount = "--max-objects-per-namespace", "objects", func(a Amount) int { return a.Objects }
	}
	return fmt.Errorf("exceeded quota: %s of hub-apiserver, requested: %s=%d, used: %[2]s=%[4]d, limited: %[2]s=%[5]d: delete some objects, or use another namespace",
		flag, of, amount(more), amount(used), amount(m))
}

// onlyHeld reports whether an update changes neither labels, annotations nor the generation: only finalizers, owners and managed fields remain, which
// have bounds of their own.
func onlyHeld(updated, old metav1.Object) bool {
	return updated.GetGeneration() == old.GetGeneration() && maps.Equal(updated.GetLabels(), old.GetLabels()) &&
		maps.Equal(updated.GetAnnotations(), old.GetAnnotations())
}
