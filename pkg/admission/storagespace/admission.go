// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagespace rejects writes, including dry runs, while storage is full. It admits writes that lead to deletions, because only they make
// room.
package storagespace

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/storagefull"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "StorageSpace"
	// slack is by how many bytes a write may grow an object that is being deleted: managedFields has one more entry when another program begins to
	// write.
	slack = 512
)

// Plugin rejects creates and updates while storage is full, except updates that lead to deletion. Finalizers are removed by updates, so objects that
// are being deleted can be updated. They may not grow, or they would use the room that is reserved for deletions, unless the user has permission to
// finalize them. These users can also remove finalizers before a deletion, and deny a cluster, whose agents may be filling etcd. Neither can be
// undone while storage is full, so neither can be repeated without limit. The plugin does not see deletions, which need little room or none.
type Plugin struct {
	permission.Guard
	// CheckSpace returns an error while storage is full. If it is nil, there always is room.
	CheckSpace func() error
	size       objectsize.Sizer
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer.
func New(size objectsize.Sizer) *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update), size: size}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.CheckSpace == nil || a.GetOperation() == admission.Create && a.GetSubresource() != "" { // such as a token, which is not stored
		return nil
	}
	full := p.CheckSpace()
	if full == nil || a.GetOperation() == admission.Update && p.maySpend(ctx, a) {
		return nil
	}
	return storagefull.NewError(full.Error())
}

// maySpend reports whether an update may use the room that is reserved for deletions.
func (p *Plugin) maySpend(ctx context.Context, a admission.Attributes) bool {
	updated, err := meta.Accessor(a.GetObject())
	if err != nil {
		return false
	}
	old, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return false
	}
	small := p.staysSmall(a)
	if old.GetDeletionTimestamp() != nil {
		return small || p.hasTheEnd(ctx, a)
	}
	return small && (denies(a) || releases(updated, old)) && p.hasTheEnd(ctx, a)
}

// staysSmall reports whether an update grows an object by no more than the slack. An object that cannot be measured counts as large.
func (p *Plugin) staysSmall(a admission.Attributes) bool {
	resource := a.GetResource().GroupResource()
	before, err := p.size(resource, a.GetOldObject())
	if err != nil {
		return false
	}
	after, err := p.size(resource, a.GetObject())
	return err == nil && after <= before+slack
}

func (p *Plugin) hasTheEnd(ctx context.Context, a admission.Attributes) bool {
	// Permission: while the embedded etcd is full, an update denies a cluster, removes finalizers, or makes a large change to an object that is being deleted.
	excused, _ := p.Excused(ctx, a, hubfinalizers.Rules(a)...)
	return excused
}

// denies reports whether an update denies an accepted cluster.
func denies(a admission.Attributes) bool {
	updated, ok := a.GetObject().(*cluster.ManagedCluster)
	old, was := a.GetOldObject().(*cluster.ManagedCluster)
	return ok && was && old.Spec.HubAcceptsClient && !updated.Spec.HubAcceptsClient
}

// releases reports whether there are fewer finalizers than before.
func releases(updated, old metav1.Object) bool {
	return len(updated.GetFinalizers()) < len(old.GetFinalizers())
}
