// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/membership"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Resource describes the positions of members.
var Resource = position.Resource{
	GroupResource: view.Resource("clustersetmembers"),
	New:           func() generic.Object { return &view.ClusterSetMember{} },
	NewList:       func() runtime.Object { return &view.ClusterSetMemberList{} },
	Split:         position.SplitName,
	WithinField:   "spec.cluster",
	SetField:      "spec.clusterSet",
	Fields: func(object generic.Object) fields.Set {
		spec := object.(*view.ClusterSetMember).Spec
		return fields.Set{"spec.cluster": spec.Cluster, "spec.clusterSet": spec.ClusterSet}
	},
}

// kind describes how members are computed.
func kind(codec runtime.Codec) derived.Definition {
	return derived.Definition{
		Resource:   Resource,
		Codec:      codec,
		FleetCodec: derived.ShownByMembers,
		Digest:     derived.DigestOfSets,
		NewIndex:   func() derived.ObjectIndex { return index{membership.New()} },
		Triggers: storage.IndexerFuncs{Resource.SetField: func(obj runtime.Object) string {
			return obj.(*view.ClusterSetMember).Spec.ClusterSet
		}},
		Indexers: &cache.Indexers{storage.FieldIndex(Resource.WithinField): func(obj any) ([]string, error) {
			return []string{obj.(*view.ClusterSetMember).Spec.Cluster}, nil
		}},
	}
}

// index computes members.
type index struct{ *membership.Index }

// Set implements derived.ObjectIndex.
func (x index) Set(stored runtime.Object) []derived.Change {
	switch stored := stored.(type) {
	case *cluster.ManagedCluster:
		return changes(x.SetCluster(stored))
	case *cluster.ManagedClusterSet:
		return changes(x.SetSet(stored))
	}
	return nil
}

// Delete implements derived.ObjectIndex.
func (x index) Delete(stored runtime.Object) []derived.Change {
	switch stored := stored.(type) {
	case *cluster.ManagedCluster:
		return changes(x.DeleteCluster(stored.Name))
	case *cluster.ManagedClusterSet:
		return changes(x.DeleteSet(stored.Name))
	}
	return nil
}

// Each implements derived.ObjectIndex.
func (x index) Each(f func(object generic.Object, clusterName, setName string)) {
	x.Members(func(m *view.ClusterSetMember) { f(m, m.Spec.Cluster, m.Spec.ClusterSet) })
}

func changes(moved []membership.Change) []derived.Change {
	if len(moved) == 0 {
		return nil
	}
	result := make([]derived.Change, len(moved))
	for i, change := range moved {
		result[i] = derived.Change{Type: change.Type, Object: change.Member}
	}
	return result
}
