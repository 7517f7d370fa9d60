// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
)

const (
	// JustNow is the maximum age of a list of a cluster's roles when access is granted, for which a user waits.
	JustNow = time.Second
	// Lately is its maximum age when existing access is checked, which happens for each request every few minutes.
	Lately = 10 * time.Second
)

// Roles caches the names of the roles of clusters. All requests of a cluster share one list of each kind: the costs do not grow with the number of
// references.
type Roles struct {
	lock sync.Mutex
	// lists are dropped when they are too old for any caller.
	lists map[roleList]*listedRoles
}

type roleList struct {
	cluster types.UID
	kind    string
}

type listedRoles struct {
	lock  sync.Mutex
	at    time.Time
	names sets.Set[string]
	// err is why names is empty: the next caller does not wait for a cluster that has just not responded.
	err error
}

// of returns a list that may be old, for the holder of its lock.
func (c *Roles) of(list roleList) *listedRoles {
	c.lock.Lock()
	defer c.lock.Unlock()
	for other, listed := range c.lists {
		if listed.lock.TryLock() { // otherwise it is in use
			if time.Since(listed.at) > Lately {
				delete(c.lists, other)
			}
			listed.lock.Unlock()
		}
	}
	if c.lists == nil {
		c.lists = map[roleList]*listedRoles{}
	}
	if c.lists[list] == nil {
		c.lists[list] = &listedRoles{}
	}
	return c.lists[list]
}

// names returns the roles of a kind in a cluster, not older than maxAge.
func (c *Roles) names(ctx context.Context, t *Target, list roleList, maxAge time.Duration) (sets.Set[string], error) {
	listed := c.of(list)
	listed.lock.Lock()
	defer listed.lock.Unlock()
	if time.Since(listed.at) > maxAge {
		at := time.Now()
		listed.names, listed.err = listRoles(ctx, t, list.kind)
		listed.at = at
		if listed.err != nil {
			listed.at = time.Now()
		}
	}
	return listed.names, listed.err
}

func listRoles(ctx context.Context, t *Target, kind string) (sets.Set[string], error) {
	names := sets.New[string]()
	list := func(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		return page, t.List(ctx, page, client.Limit(options.Limit), client.Continue(options.Continue))
	}
	err := paging.EachItem(ctx, list, metav1.ListOptions{}, func(role *metav1.PartialObjectMetadata) error {
		names.Insert(rights.RoleName(kind, role.Namespace, role.Name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// SeenRoles has the observations about the roles that a request refers to.
type SeenRoles struct {
	// Known reports whether they could be read.
	Known bool
	// Referred reports whether the request refers to roles.
	Referred bool
	// Missing lists the roles that the cluster does not have: a binding to them grants nothing.
	Missing []string
}

// Check checks whether the roles exist that are only referred to. A failure to do so does not make complete access fail.
func (c *Roles) Check(
	ctx context.Context, t *Target, cluster *v1alpha1.Cluster, wanted *rights.Rights, maxAge time.Duration,
) (seen SeenRoles) {
	for _, role := range wanted.ReferredTo() {
		there, err := c.names(ctx, t, roleList{cluster.UID, role.Kind}, maxAge)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Checking whether a role exists failed", "role", role.Name, "reason", err.Error())
			return SeenRoles{}
		}
		seen.Referred = true
		if !there.Has(role.Name) {
			seen.Missing = append(seen.Missing, role.Name)
		}
	}
	seen.Known = true
	return seen
}
