// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownerreferences guards metadata.ownerReferences of all our kinds: the hub's garbage collector deletes an object whose owner does not exist,
// and does not check whether the author of the reference may delete it. It also guards the labels that make a work part of a ManifestWorkReplicaSet
// or of an EdgePlacement: their controllers prune works that are not desired.
package ownerreferences

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "OwnerReferences"

// Plugin rejects changes of owner references by users who may not delete the object. Unlike the Kubernetes plugin for this purpose, it ignores
// blockOwnerDeletion: any other object of the hub can have it as well.
type Plugin struct {
	permission.Guard
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// ofTheirMakers are the kinds whose objects only concern their creators. They may be created with an owner, since programs that create them rely on
// garbage collection. Objects of other kinds also affect what others have decided: acceptance, labels, bindings, clusters, requests.
var ofTheirMakers = map[schema.GroupResource]bool{
	cluster.Resource("managedclustersetbindings"): true,
	cluster.Resource("placements"):                true,
	openmcp.Resource("clusterrequests"):           true,
	openmcp.Resource("accessrequests"):            true,
	work.Resource("manifestworks"):                true,
	work.Resource("manifestworkreplicasets"):      true,
	edge.Resource("edgeservices"):                 true,
	edge.Resource("deploymentpolicies"):           true,
	edge.Resource("deploymentpatterns"):           true,
	// The server sets the owner, and nodeowner rejects any other.
	edge.Resource("edgenodes"): true,
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, ok := permission.Stored(a)
	if !ok {
		return nil
	}
	if set := setOf(a, updated); a.GetOperation() == admission.Update && set != (ofSet{}) && set != setOf(a, old) {
		// Permission: the labels of a ManifestWork change so that it belongs to a ManifestWorkReplicaSet.
		return p.Require(ctx, a, "make the work one of a ManifestWorkReplicaSet by its labels (the hub deletes works that are not desired by the set)",
			permission.On(a, "delete", ""))
	}
	if placement := placementOf(a, updated); a.GetOperation() == admission.Update && placement != (ofPlacement{}) && placement != placementOf(a, old) {
		// Permission: the labels of a ManifestWork change so that it belongs to an EdgePlacement.
		return p.Require(ctx, a, "make the work one of an EdgePlacement by its labels (the hub deletes works of placements that are gone)",
			permission.On(a, "delete", ""))
	}
	if equality.Semantic.DeepEqual(updated.GetOwnerReferences(), old.GetOwnerReferences()) {
		return nil
	}
	if a.GetOperation() == admission.Create && ofTheirMakers[a.GetResource().GroupResource()] {
		return nil
	}
	// Permission: `metadata.ownerReferences` change, or are set on creation, except on new objects that affect only their creator.
	return p.Require(ctx, a, "change metadata.ownerReferences (when the owners are gone, the garbage collector deletes the object)",
		permission.On(a, "delete", ""))
}

// ofSet has the labels by which a work belongs to a replica set.
type ofSet struct{ set, hash, placement string }

// setOf returns the labels of a work. It returns the zero value for objects without a set, and for a work without a placement.
func setOf(a admission.Attributes, object metav1.Object) ofSet {
	labels := object.GetLabels()
	of := ofSet{labels[work.ReplicaSetLabel], labels[work.ReplicaSetHashLabel], labels[work.PlacementLabel]}
	if !permission.Is(a, work.Resource("manifestworks")) || of.placement == "" || of.set+of.hash == "" {
		return ofSet{}
	}
	return of
}

// ofPlacement has the label and the annotation by which a work belongs to an EdgePlacement.
type ofPlacement struct{ hash, placement string }

// placementOf returns the zero value for objects without a placement.
func placementOf(a admission.Attributes, object metav1.Object) ofPlacement {
	hash := object.GetLabels()[edge.PlacementHashLabel]
	if !permission.Is(a, work.Resource("manifestworks")) || hash == "" {
		return ofPlacement{}
	}
	return ofPlacement{hash, object.GetAnnotations()[edge.PlacementAnnotation]}
}
