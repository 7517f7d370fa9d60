// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Kind is what one derived resource has that others do not.
type Kind struct {
	position.Resource
	// Codec encodes objects, for the cacher's checks; nothing is stored with it.
	Codec runtime.Codec
	// FleetCodec decodes of the fleet what the index needs.
	FleetCodec func(all runtime.Codec) runtime.Codec
	// Digest is that of the rules that decide who sees the objects.
	Digest func(*visibility.Revision) string
	// NewIndex makes an empty index.
	NewIndex func() Index
	// Triggers and Indexers are those of the cacher.
	Triggers storage.IndexerFuncs
	Indexers *cache.Indexers
}

// Index computes the objects from the clusters and sets of a fleet. It has one user at a time.
type Index interface {
	// Set takes a cluster or a set that is new or has changed, Delete one that is gone. They return what that changes, in the
	// same order on every replica.
	Set(stored runtime.Object) []Change
	Delete(stored runtime.Object) []Change
	// Each calls f with every object, and with the cluster and the set that it is made of, "" for none.
	Each(f func(object generic.Object, clusterName, setName string))
}

// Change is what happened to one object.
type Change struct {
	// Type is Added, Modified or Deleted.
	Type   watch.EventType
	Object generic.Object
}

// Observer is told of the visibility revisions with another digest, in their place among the other changes.
type Observer interface {
	// Reset starts anew at a version, with the digest of the last visibility revision, if there is one.
	Reset(version uint64, digest string)
	// Observe tells of a new visibility revision. It may wait a little for this replica to see the rules that it is of.
	Observe(ctx context.Context, version uint64, digest string)
}

// DigestOfSets is that of the rules that decide who sees which sets, and DigestOfClusters that of those about clusters.
func DigestOfSets(revision *visibility.Revision) string { return revision.Digest }

// DigestOfClusters is that of the rules that decide who sees which clusters.
func DigestOfClusters(revision *visibility.Revision) string { return revision.ClustersDigest }
