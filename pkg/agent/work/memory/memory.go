// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory is what the agent remembers of what it has brought to its cluster: a record for each work.
//
// There can be more than one home for it. Applied is the one that upstream's agents have, too: an AppliedManifestWork for each work.
// An agent that may have no cluster-scoped objects needs another.
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

// Resource is an object that was brought to the cluster, or is about to be.
type Resource struct {
	apply.Target
	// UID is empty until it is known.
	UID types.UID
}

// sorted returns resources in an order that does not depend on that of the manifests: a work with the same manifests in another order has the
// same record.
func sorted(resources []Resource) []Resource {
	return slices.SortedFunc(slices.Values(resources), func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Record is what is remembered of one work.
type Record struct {
	// Owner is what the objects of the work belong to.
	Owner apply.Owner
	// Work is the name of the work on the hub with that hash.
	Work, HubHash string
	Resources     []Resource
	// Evicting is since when the work has been missing; nil if it is there.
	Evicting *time.Time
	// Deleting says that the record is to go, once all of its objects are gone.
	Deleting bool

	version string
}

// Version changes with the record.
func (r *Record) Version() string { return r.version }

// UID is the one that is remembered of an object, and whether the object is remembered at all.
func (r *Record) UID(t apply.Target) (uid types.UID, known bool) {
	for _, resource := range r.Resources {
		if resource.Is(t) {
			return resource.UID, true
		}
	}
	return "", false
}

// Memory is where records are. Each of its writes changes the record that it is given, and fails with a conflict if another process
// has written that record meanwhile.
type Memory interface {
	// Find is the record of a work of this agent's hub, or nil.
	Find(ctx context.Context, work string) (*Record, error)
	// Make finds the record of a work, or makes it, with these labels. anew says that there is hardly one: it is not looked for before.
	Make(ctx context.Context, work string, labels map[string]string, anew bool) (*Record, error)
	// Remember replaces the resources of a record.
	Remember(ctx context.Context, r *Record, resources []Resource) error
	// Evict says since when the work has been missing, or, by nil, that it is there.
	Evict(ctx context.Context, r *Record, since *time.Time) error
	// Forget begins the end of a record, and Drop ends it. What has not been forgotten cannot be dropped.
	Forget(ctx context.Context, r *Record) error
	Drop(ctx context.Context, r *Record) error
	// List is all records of this agent, those of works of former hubs as well.
	List(ctx context.Context) ([]*Record, error)
	// Rival is which work an owner reference stands for, if it is one that some agent still applies; else it is empty.
	Rival(ctx context.Context, ref metav1.OwnerReference) (string, error)
}
