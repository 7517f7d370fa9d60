// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// mappedKind is a kind, and the function that maps its events to placements.
type mappedKind struct {
	kind     client.Object
	concerns handler.MapFunc
}

// watches returns all kinds that a work depends on. Changes of the members of sets change placements, which are watched.
func watches(c client.Reader) []mappedKind {
	of := func(field string, value func(client.Object) string) handler.MapFunc {
		return func(ctx context.Context, obj client.Object) []reconcile.Request {
			return kit.Requests(ctx, c, &edgev1alpha1.EdgePlacementList{}, client.MatchingFields{field: value(obj)})
		}
	}
	ofVersion := of(byService, func(obj client.Object) string {
		s := obj.(*edgev1alpha1.EdgeService)
		return serviceKey(s.Namespace, s.Spec.URL, s.Spec.Version, s.Spec.Arch)
	})
	ofService := of(byService, serviceOf)
	nothing := func(context.Context, client.Object) []reconcile.Request { return nil }
	return []mappedKind{
		{&edgev1alpha1.EdgePlacement{}, func(_ context.Context, obj client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
		}},
		{&workv1.ManifestWork{}, ofWork},
		{&edgev1alpha1.EdgeNode{}, of(byNode, client.Object.GetName)},
		{&edgev1alpha1.EdgeService{}, func(ctx context.Context, obj client.Object) []reconcile.Request {
			return append(ofVersion(ctx, obj), ofService(ctx, obj)...)
		}},
		{&edgev1alpha1.DeploymentPolicy{}, of(byOrigin, func(obj client.Object) string {
			return originKey(obj.GetNamespace(), edgev1alpha1.KindDeploymentPolicy, obj.GetName())
		})},
		{&edgev1alpha1.DeploymentPattern{}, of(byOrigin, func(obj client.Object) string {
			return originKey(obj.GetNamespace(), edgev1alpha1.KindDeploymentPattern, obj.GetName())
		})},
		// These are read from the cache.
		{&clusterv1.ManagedCluster{}, nothing},
		{&clusterv1beta2.ManagedClusterSet{}, nothing},
		{&clusterv1beta2.ManagedClusterSetBinding{}, nothing},
	}
}

// ofWork returns the placement of a work, if its annotation and its label agree.
func ofWork(_ context.Context, obj client.Object) []reconcile.Request {
	namespace, name, found := strings.Cut(obj.GetAnnotations()[edgev1alpha1.PlacementAnnotation], "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if !found || obj.GetLabels()[edgev1alpha1.PlacementHashLabel] != hash(key) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// FieldIndex is a field by which objects of a kind are looked up in the cache.
type FieldIndex struct {
	Kind  client.Object
	Field string
	Of    client.IndexerFunc
}

var indexes = []FieldIndex{
	{&edgev1alpha1.EdgeService{}, byURL, func(obj client.Object) []string { return []string{obj.(*edgev1alpha1.EdgeService).Spec.URL} }},
	{&edgev1alpha1.EdgePlacement{}, byNode, func(obj client.Object) []string { return []string{obj.(*edgev1alpha1.EdgePlacement).Spec.Node} }},
	{&edgev1alpha1.EdgePlacement{}, byOrigin, func(obj client.Object) []string {
		origin := obj.(*edgev1alpha1.EdgePlacement).Spec.Origin
		return []string{originKey(obj.GetNamespace(), origin.Kind, origin.Name)}
	}},
	{&edgev1alpha1.EdgePlacement{}, byService, func(obj client.Object) (keys []string) {
		p := obj.(*edgev1alpha1.EdgePlacement)
		for _, s := range p.Spec.Services {
			keys = append(keys, serviceKey(s.Org, s.Name, s.Version, s.Arch))
			if len(p.Status.Attempts) > 0 { // Another version may be the one that comes first.
				keys = append(keys, serviceKey(s.Org, s.Name, "", ""))
			}
		}
		return keys
	}},
	{&workv1.ManifestWork{}, byHash, func(obj client.Object) []string {
		if label := obj.GetLabels()[edgev1alpha1.PlacementHashLabel]; label != "" {
			return []string{label}
		}
		return nil
	}},
}

func serviceKey(org, url, version, arch string) string {
	return strings.Join([]string{org, url, version, arch}, " ")
}

func originKey(namespace, kind, name string) string {
	return strings.Join([]string{namespace, kind, name}, "/")
}
