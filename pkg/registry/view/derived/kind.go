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

// Definition describes one derived resource.
type Definition struct {
	position.Resource
	// Codec encodes objects for the cacher's checks; nothing is stored with it.
	Codec runtime.Codec
	// FleetCodec returns a codec that decodes what the index needs of the fleet.
	FleetCodec func(all runtime.Codec) runtime.Codec
	// Digest returns the digest of the rules that decide who sees the objects.
	Digest func(*visibility.Revision) string
	// NewIndex returns an empty index.
	NewIndex func() ObjectIndex
	// Triggers and Indexers are those of the cacher.
	Triggers storage.IndexerFuncs
	Indexers *cache.Indexers
}

// ObjectIndex computes the objects from the clusters and sets of a fleet. It has one user at a time.
type ObjectIndex interface {
	// Set applies a cluster or a set that is new or changed, and Delete one that is gone. They return the resulting changes, in the same order on
	// every replica.
	Set(stored runtime.Object) []Change
	Delete(stored runtime.Object) []Change
	// Each calls f with every object, and with the cluster and the set of which it is made, or "".
	Each(f func(object generic.Object, clusterName, setName string))
}

// Change is a change of one object.
type Change struct {
	// Type is Added, Modified or Deleted.
	Type   watch.EventType
	Object generic.Object
}

// Observer is notified of the visibility revisions with a changed digest, in order among the other changes.
type Observer interface {
	// Reset starts over at a version, with the digest of the last visibility revision, if one exists.
	Reset(version uint64, digest string)
	// Observe reports a new visibility revision. It may wait a little for this replica to observe the rules of that revision.
	Observe(ctx context.Context, version uint64, digest string)
}

// DigestOfSets returns the digest of the rules that decide who sees which sets.
func DigestOfSets(revision *visibility.Revision) string { return revision.Digest }

// DigestOfClusters returns the digest of the rules that decide who sees which clusters.
func DigestOfClusters(revision *visibility.Revision) string { return revision.ClustersDigest }
