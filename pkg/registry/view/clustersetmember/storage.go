// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetmember is the registry of clustersetmembers, a derived resource. Package derived computes all members from the clusters and sets
// in etcd, and visibility shows each user those of the sets that the user may get.
package clustersetmember

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// REST serves clustersetmembers.
type REST struct {
	*filtered.REST
	members *derived.Cache
}

// New returns the registry. The codec is for the cacher's checks.
func New(config filtered.Config, codec runtime.Codec) (*REST, error) {
	members, err := derived.New(kind(codec), config.Fleet, config.Connect, config.Rules.OfSets())
	if err != nil {
		return nil, err
	}
	return &REST{members: members, REST: filtered.New(members, visibility.Reader{
		Resource: Resource, Shown: "the members of the set", Rules: config.Rules, Authorizer: config.Authorizer,
	}, tableConvertor, filtered.Names{Singular: "clustersetmember", Short: []string{"csm"}}, Resource.SetField, Resource.WithinField)}, nil
}

// Ready returns an error as long as members cannot be served.
func (r *REST) Ready() error {
	if err := r.members.Check(); err != nil {
		return err
	}
	if r.Visible.Rules.Latest() == nil {
		return errors.New("the RBAC rules of the hub have not been listed yet")
	}
	return nil
}

// Count returns the number of clusters in a set, as observed by this replica.
func (r *REST) Count(ctx context.Context, setName string) (int, error) {
	list := &view.ClusterSetMemberList{}
	err := r.members.GetList(ctx, Resource.SetKey(setName), storage.ListOptions{Recursive: true, ResourceVersion: "0", Predicate: storage.Everything}, list)
	return len(list.Items), err
}
