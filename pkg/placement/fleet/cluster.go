// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// ClusterInfo is a ManagedCluster with derived data for all placements, computed once for each version of the object. It is safe for concurrent use.
type ClusterInfo struct {
	// Object must not be changed.
	Object *clusterv1.ManagedCluster

	Claims      labels.Set
	CPU, Memory Amount

	// Most hubs have no placement with CEL, so this is computed on demand.
	once  sync.Once
	value traits.Mapper
	err   error
}

// Amount is an amount of a resource, and whether the cluster reports it.
type Amount struct {
	Value    float64
	Reported bool
}

// NewCluster returns a ClusterInfo. The ManagedCluster must not be changed afterwards.
func NewCluster(obj *clusterv1.ManagedCluster) *ClusterInfo {
	c := &ClusterInfo{Object: obj, CPU: allocatable(obj, "cpu"), Memory: allocatable(obj, "memory")}
	if len(obj.Status.ClusterClaims) > 0 {
		c.Claims = make(labels.Set, len(obj.Status.ClusterClaims))
		for i := range obj.Status.ClusterClaims {
			c.Claims[obj.Status.ClusterClaims[i].Name] = obj.Status.ClusterClaims[i].Value
		}
	}
	return c
}

// Name returns the name of the ManagedCluster.
func (c *ClusterInfo) Name() string { return c.Object.Name }

// Deleting reports whether the cluster is being deleted, so that nothing new may be placed on it.
func (c *ClusterInfo) Deleting() bool { return c.Object.DeletionTimestamp != nil }

// allocatable returns the allocatable amount of a resource, if it has a capacity, too: a cluster that reports one of the two is about to report the
// other.
func allocatable(obj *clusterv1.ManagedCluster, name clusterv1.ResourceName) Amount {
	quantity, reported := obj.Status.Allocatable[name]
	if _, both := obj.Status.Capacity[name]; !reported || !both {
		return Amount{}
	}
	return Amount{quantity.AsApproximateFloat64(), true}
}

// AsMap returns the cluster as CEL sees it: in the form of its JSON, without managed fields.
func (c *ClusterInfo) AsMap() (traits.Mapper, error) {
	c.once.Do(func() {
		shown := *c.Object
		shown.ManagedFields = nil
		var fields map[string]any
		fields, c.err = runtime.DefaultUnstructuredConverter.ToUnstructured(&shown)
		if c.err == nil {
			c.value = types.NewStringInterfaceMap(types.DefaultTypeAdapter, fields)
		}
	})
	return c.value, c.err
}

func byName(a, b *ClusterInfo) int { return strings.Compare(a.Object.Name, b.Object.Name) }

// Union merges lists that are ordered by name, without duplicates.
func Union(lists [][]*ClusterInfo) []*ClusterInfo {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return lists[0]
	}
	a, b := Union(lists[:len(lists)/2]), Union(lists[len(lists)/2:])
	all := make([]*ClusterInfo, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch order := byName(a[0], b[0]); {
		case order < 0:
			all, a = append(all, a[0]), a[1:]
		case order > 0:
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	return append(append(all, a...), b...)
}
