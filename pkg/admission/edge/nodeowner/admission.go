// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeowner sets the ManagedCluster of an EdgeNode's name as its owner, so that they are deleted together: what users configured for a former
// cluster must not apply to a later one of that name.
package nodeowner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "EdgeNodeOwner"

// Plugin sets the owner of a node when it is created, keeps it, and rejects all other owners: with a second owner, the node would not be deleted with
// its cluster.
type Plugin struct {
	*admission.Handler
	// Clusters gets the ManagedClusters of the hub. If it is nil, no node is admitted.
	Clusters rest.Getter
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin. It needs the clusters.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// Admit implements admission.MutationInterface. It adds the owner if a client sends none, as with an apply from a file.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes"))
	if updated == nil || a.GetSubresource() != "" {
		return err
	}
	owner, err := p.owner(ctx, updated.Name, old)
	if owner == nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(updated.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
	updated.OwnerReferences = append([]metav1.OwnerReference{*owner}, others...)
	return nil
}

// Validate implements admission.ValidationInterface. It checks every subresource. A node without a cluster has no owner. Creating one is rejected by
// nodeaccess, which reports this only to users who may know it.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes"))
	if updated == nil {
		return err
	}
	owner, err := p.owner(ctx, updated.Name, old)
	if err != nil {
		return err
	}
	var want []metav1.OwnerReference
	if owner != nil {
		want = append(want, *owner)
	}
	if equality.Semantic.DeepEqual(updated.OwnerReferences, want) {
		return nil
	}
	return admission.NewForbidden(a, errors.New("the owner of an EdgeNode is the ManagedCluster of its name, and no other object: "+
		"leave metadata.ownerReferences out, the server sets it"))
}

// owner returns the reference to the cluster of a node. It returns a stored reference unchanged, and nil if the cluster does not exist.
func (p *Plugin) owner(ctx context.Context, name string, old *edge.EdgeNode) (*metav1.OwnerReference, error) {
	for i := range old.OwnerReferences {
		if o := &old.OwnerReferences[i]; o.APIVersion == clusterv1.SchemeGroupVersion.String() && o.Kind == "ManagedCluster" && o.Name == name {
			return o.DeepCopy(), nil
		}
	}
	if name == "" {
		return nil, nil // The server has not generated the name yet. There is no cluster for it.
	}
	if p.Clusters == nil {
		return nil, apierrors.NewServiceUnavailable("the server is still starting: try again in a few seconds")
	}
	// Read from the store: a cache may have a previous cluster.
	object, err := p.Clusters.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("%s cannot read the ManagedCluster %q: %w", PluginName, name, err))
	}
	c, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the ManagedCluster %q is a %T", name, object))
	}
	return &metav1.OwnerReference{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster", Name: c.Name, UID: c.UID}, nil
}
