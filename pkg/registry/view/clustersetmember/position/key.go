// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

const (
	// FleetPrefix is the directory in etcd of what the members are computed from. Clusters, sets and visibility revisions
	// are stored under it so that one watch sees the changes of all, in order.
	FleetPrefix = "/fleet"

	// Root is the directory that the members appear to have. Besides them it has the clock.
	Root = "/clustersetmembers"
	// Members is the range of all members.
	Members = Root + "/set/"
)

// MemberKey is the key of one member. Keys are ordered by set and then by cluster, so that the members of one set are
// one range.
func MemberKey(clusterName, setName string) string { return SetKey(setName) + clusterName }

// SetKey is the range of a set's members. It ends in a slash: no other set's key starts with it.
func SetKey(setName string) string { return Members + setName + "/" }

// KeyOf is the key of a member, or of the clock.
func KeyOf(obj runtime.Object) (string, error) {
	m, ok := obj.(*view.ClusterSetMember)
	if !ok {
		return "", fmt.Errorf("%T is no ClusterSetMember", obj)
	}
	if isClock(m) {
		return clockKey, nil
	}
	return MemberKey(m.Spec.Cluster, m.Spec.ClusterSet), nil
}

// Attributes are what selectors compare, of a member or of the clock.
func Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, ok := obj.(*view.ClusterSetMember)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ClusterSetMember", obj)
	}
	if isClock(m) {
		return labels.Set{ClockName: ""}, fields.Set{ClockName: ""}, nil
	}
	return m.Labels, fields.Set{
		"metadata.name":   m.Name,
		"spec.cluster":    m.Spec.Cluster,
		"spec.clusterSet": m.Spec.ClusterSet,
	}, nil
}

// noSet is not the name of a set, and cannot be.
const noSet = "_"

// Range is the smallest range of keys that holds all that a request selects. The cache keeps past versions of ranges
// only, so that a single member is read as such at the latest version and as one of its set at any other.
func Range(opts storage.ListOptions) (key string, recursive bool) {
	set, bySet := opts.Predicate.Field.RequiresExactMatch("spec.clusterSet")
	clusterName, byCluster := opts.Predicate.Field.RequiresExactMatch("spec.cluster")
	if name, ok := opts.Predicate.Field.RequiresExactMatch("metadata.name"); ok {
		clusterName, set, _ = SplitName(name)
		bySet, byCluster = true, true
	}
	if bySet && !Possible(set) || byCluster && !Possible(clusterName) {
		return SetKey(noSet), true
	}
	latest := opts.ResourceVersion == "" && opts.Predicate.Continue == ""
	switch {
	case set == "":
		return Members, true
	case clusterName == "" || !latest:
		return SetKey(set), true
	default:
		return MemberKey(clusterName, set), false
	}
}

// EncodeContinue is the token of a list of all members that goes on from a key.
func EncodeContinue(from string, version int64) (string, error) {
	return storage.EncodeContinue(from, Members, version)
}

// DecodeContinue reads such a token. A version of 0 or less means the latest.
func DecodeContinue(token string) (from string, version int64, err error) {
	return storage.DecodeContinue(token, Members)
}
