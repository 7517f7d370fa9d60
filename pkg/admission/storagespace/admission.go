// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagespace refuses writes, dry runs too, while there is no room for them. Writes that lead to deletions go on: only
// they make room.
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
	// slack is by how many bytes a write may make an object larger that is on its way to its end: the record of field managers
	// has one more when another program begins to write.
	slack = 512
)

// Plugin refuses to create and to change objects while there is no room, but for changes that lead to their end. Finalizers
// are removed by updates, so objects that are being deleted can be changed. They may not grow, or they would take what is
// kept for deletions, unless by users who have the right to their end. These users can also remove finalizers before a
// deletion, and deny a cluster: its agents may be those that fill etcd. Neither can be undone while there is no room, so
// neither can be done for ever. The plugin does not see a deletion, which needs little room or none.
type Plugin struct {
	permission.Guard
	// Room is an error while there is no room for writes. Without it, there always is.
	Room func() error
	size objectsize.Sizer
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, to be given an authorizer.
func New(size objectsize.Sizer) *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update), size: size}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.Room == nil || a.GetOperation() == admission.Create && a.GetSubresource() != "" { // such as a token, which is not stored
		return nil
	}
	full := p.Room()
	if full == nil || a.GetOperation() == admission.Update && p.maySpend(ctx, a) {
		return nil
	}
	return storagefull.NewError(full.Error())
}

// maySpend says whether an update may take from what is kept for deletions.
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

// staysSmall says whether an update makes an object larger by no more than the slack. What cannot be measured is large.
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
	// Permission: while the embedded etcd is full, an update denies a cluster, takes finalizers away, or changes much of what is being deleted.
	excused, _ := p.Excused(ctx, a, hubfinalizers.Rules(a)...)
	return excused
}

// denies says whether a cluster is accepted no more.
func denies(a admission.Attributes) bool {
	updated, ok := a.GetObject().(*cluster.ManagedCluster)
	old, was := a.GetOldObject().(*cluster.ManagedCluster)
	return ok && was && old.Spec.HubAcceptsClient && !updated.Spec.HubAcceptsClient
}

// releases says whether there are fewer finalizers than before.
func releases(updated, old metav1.Object) bool {
	return len(updated.GetFinalizers()) < len(old.GetFinalizers())
}
