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
)

const (
	// JustNow is how old a list of a cluster's roles may be when access is given, which somebody waits for.
	JustNow = time.Second
	// Lately is how old it may be when it is looked whether access is in place, which comes for each request every few minutes.
	Lately = 10 * time.Second
	// rolesPage is how many roles are asked for at once.
	rolesPage = 500
)

// Roles are the names of the roles that clusters have. All requests of a cluster share one list of each kind: what they
// cost does not grow with what they refer to.
type Roles struct {
	lock sync.Mutex
	// lists are dropped when they are too old for anybody.
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
	// err is why there are none: who comes next does not wait for a cluster that has just not answered.
	err error
}

// of is a list that may be old, for whoever holds its lock.
func (c *Roles) of(list roleList) *listedRoles {
	c.lock.Lock()
	defer c.lock.Unlock()
	for other, listed := range c.lists {
		if listed.lock.TryLock() { // otherwise somebody uses it
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

// names are the roles of a kind in a cluster, as they were at most maxAge ago.
func (c *Roles) names(ctx context.Context, t *Target, list roleList, maxAge time.Duration) (sets.Set[string], error) {
	listed := c.of(list)
	listed.lock.Lock()
	defer listed.lock.Unlock()
	if time.Since(listed.at) > maxAge {
		at := time.Now()
		listed.names, listed.err = listRoles(ctx, t, list.kind)
		if listed.at = at; listed.err != nil {
			listed.at = time.Now()
		}
	}
	return listed.names, listed.err
}

func listRoles(ctx context.Context, t *Target, kind string) (sets.Set[string], error) {
	names := sets.New[string]()
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := t.List(ctx, page, client.Limit(rolesPage), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			names.Insert(rights.RoleName(kind, page.Items[i].Namespace, page.Items[i].Name))
		}
		if next = page.Continue; next == "" {
			return names, nil
		}
	}
}

// SeenRoles is what is known of the roles that a request refers to.
type SeenRoles struct {
	// Known is whether they could be looked for.
	Known bool
	// Referred is whether there are any.
	Referred bool
	// Missing are those that the cluster does not have: a binding to them gives no right.
	Missing []string
}

// Look looks for the roles that are only referred to. Access that is complete does not fail because that cannot be done.
func (c *Roles) Look(
	ctx context.Context, t *Target, cluster *v1alpha1.Cluster, wanted *rights.Rights, maxAge time.Duration,
) (seen SeenRoles) {
	for _, role := range wanted.ReferredTo() {
		there, err := c.names(ctx, t, roleList{cluster.UID, role.Kind}, maxAge)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Cannot tell whether a role is there", "role", role.Name, "reason", err.Error())
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
