// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory stores which objects the agent has applied to its cluster: a record for each work.
//
// There are several implementations. Applied stores the records as upstream's agents do: an AppliedManifestWork for each work. Namespaced is for an
// agent that may have no cluster-scoped objects.
package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
)

// AppliedResource is an object that was applied to the cluster, or is about to be.
type AppliedResource struct {
	apply.Target
	// UID is empty until it is known.
	UID types.UID
}

// sorted returns resources in an order that does not depend on that of the manifests: a work with the same manifests in a different order has the
// same record.
func sorted(resources []AppliedResource) []AppliedResource {
	return slices.SortedFunc(slices.Values(resources), func(a, b AppliedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Record is the record of one work.
type Record struct {
	// Owner is the owner of the objects of the work.
	Owner apply.Owner
	// Work is the name of the work on the hub with that hash.
	Work, HubHash string
	Resources     []AppliedResource
	// Evicting is when the work was first missing; nil if it exists.
	Evicting *time.Time
	// Deleting is whether the record will be deleted, once all of its objects are gone.
	Deleting bool

	version string
}

// Version returns the resource version of the record.
func (r *Record) Version() string { return r.version }

// UID returns the recorded UID of an object, and whether the object is recorded.
func (r *Record) UID(t apply.Target) (uid types.UID, known bool) {
	for _, resource := range r.Resources {
		if resource.Is(t) {
			return resource.UID, true
		}
	}
	return "", false
}

// Memory stores records. Each write updates the given record, and fails with a conflict if another process has changed the stored record since it was
// read.
type Memory interface {
	// Find returns the record of a work of this agent's hub, or nil.
	Find(ctx context.Context, work string) (*Record, error)
	// Ensure returns the record of a work, and creates it with these labels if it does not exist. isNew means that it probably does not exist: then it
	// is created without a read first.
	Ensure(ctx context.Context, work string, labels map[string]string, isNew bool) (*Record, error)
	// SetResources replaces the resources of a record.
	SetResources(ctx context.Context, r *Record, resources []AppliedResource) error
	// Evict records when the work was first missing, or nil if it exists.
	Evict(ctx context.Context, r *Record, since *time.Time) error
	// StartDeletion starts the deletion of a record, and CompleteDeletion completes it.
	StartDeletion(ctx context.Context, r *Record) error
	CompleteDeletion(ctx context.Context, r *Record) error
	// List returns all records of this agent, including those of works of former hubs.
	List(ctx context.Context) ([]*Record, error)
	// OtherOwner returns the work of an owner reference if an agent still applies it, or "".
	OtherOwner(ctx context.Context, ref metav1.OwnerReference) (string, error)
}
