// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

const (
	// justNow and lately are how old a list of a cluster's roles may be: when access is given, which somebody waits for, and when it
	// is looked at whether access is in place, which comes for each request every few minutes.
	justNow, lately = time.Second, 10 * time.Second
	// rolesPage is how many roles are asked for at once.
	rolesPage = 500
	// mostRolesNamed bounds a message.
	mostRolesNamed = 20
)

// clusterRoles are the names of the roles that clusters have. All requests of a cluster share one list of each kind: what they
// cost does not grow with what they refer to.
type clusterRoles struct {
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
func (c *clusterRoles) of(list roleList) *listedRoles {
	c.lock.Lock()
	defer c.lock.Unlock()
	for other, listed := range c.lists {
		if listed.lock.TryLock() { // otherwise somebody uses it
			if time.Since(listed.at) > lately {
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
func (c *clusterRoles) names(ctx context.Context, t *target, list roleList, maxAge time.Duration) (sets.Set[string], error) {
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

func listRoles(ctx context.Context, t *target, kind string) (sets.Set[string], error) {
	names := sets.New[string]()
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := t.List(ctx, page, client.Limit(rolesPage), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			names.Insert(roleName(kind, page.Items[i].Namespace, page.Items[i].Name))
		}
		if next = page.Continue; next == "" {
			return names, nil
		}
	}
}

func roleName(kind, namespace, name string) string {
	if kind == roleKind {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// rolesSeen is what is known of the roles that a request refers to.
type rolesSeen struct {
	// known is whether they could be looked for.
	known bool
	// referred is whether there are any.
	referred bool
	// missing are those that the cluster does not have: a binding to them gives no right.
	missing []string
}

// role is one that a request only refers to.
type role struct{ kind, name string }

// referredTo are the roles that are only referred to, each once.
func (r *rights) referredTo() (roles []role) {
	seen := sets.New[string]()
	for _, object := range r.objects {
		seen.Insert(key(object))
	}
	for _, object := range r.objects {
		ref := roleRefOf(object)
		name := roleName(ref.Kind, object.GetNamespace(), ref.Name)
		if ref.Name != "" && !seen.Has(name) {
			seen.Insert(name)
			roles = append(roles, role{ref.Kind, name})
		}
	}
	return roles
}

// lookForRoles looks for the roles that are only referred to. Access that is complete does not fail because that cannot be done.
func (r *access) lookForRoles(
	ctx context.Context, t *target, cluster *v1alpha1.Cluster, wanted *rights, maxAge time.Duration,
) (seen rolesSeen) {
	for _, role := range wanted.referredTo() {
		there, err := r.roles.names(ctx, t, roleList{cluster.UID, role.kind}, maxAge)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Cannot tell whether a role is there", "role", role.name, "reason", err.Error())
			return rolesSeen{}
		}
		seen.referred = true
		if !there.Has(role.name) {
			seen.missing = append(seen.missing, role.name)
		}
	}
	seen.known = true
	return seen
}

// remember says on a request whether its roles are there. What is not known stays as it was said last.
func (s rolesSeen) remember(ar *v1alpha1.AccessRequest) {
	condition := metav1.Condition{
		Type: clusterprovider.ConditionRoles, Status: metav1.ConditionTrue, Reason: hub.ReasonRolesFound, Message: "the cluster has all roles that are referred to",
	}
	switch {
	case !s.known:
		return
	case !s.referred:
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
		return
	case len(s.missing) > 0:
		named, more := s.missing, ""
		if len(named) > mostRolesNamed {
			named, more = named[:mostRolesNamed], fmt.Sprintf(" and %d more", len(s.missing)-mostRolesNamed)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, hub.ReasonRolesMissing
		condition.Message = "not in the cluster, and so without any right as yet: " + strings.Join(named, ", ") + more
	}
	hub.SetCondition(&ar.Status.Status, ar.Generation, condition)
}

// followRoles looks whether the roles of a request whose access is in place are still there, or there by now. A cluster that does
// not answer must not keep the requests of others waiting.
func (r *access) followRoles(ctx context.Context, s *seen) error {
	wanted, err := r.wantedBy(s.ar)
	if err != nil || len(wanted.referredTo()) == 0 || s.cluster.Status.Phase != v1alpha1.StatusPhaseReady || s.closer.unreachable != nil {
		return nil //nolint:nilerr // what was granted is not wrong; the Cluster says what else is
	}
	config := rest.CopyConfig(s.closer.config)
	config.Timeout = closeTimeout
	t, err := newTarget(config, nil, nil)
	if err != nil {
		return err
	}
	return r.reportRoles(ctx, s.ar, r.lookForRoles(ctx, t, s.cluster, wanted, lately))
}

func (r *access) reportRoles(ctx context.Context, ar *v1alpha1.AccessRequest, seen rolesSeen) error {
	before := ar.DeepCopy()
	seen.remember(ar)
	if err := hub.PatchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	r.tellOfRoles(before, ar)
	return nil
}

// tellOfRoles makes an event when roles are missing, or are there that were missing. That all is well from the start is not worth one.
func (r *access) tellOfRoles(before, ar *v1alpha1.AccessRequest) {
	if meta.FindStatusCondition(before.Status.Conditions, clusterprovider.ConditionRoles) == nil &&
		meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionRoles) {
		return
	}
	conditionevents.Record(r.events, ar, before.Status.Conditions, ar.Status.Conditions, clusterprovider.ConditionRoles, "LookForRoles")
}

// wantedBy are the rights that a request asks for.
func (r *access) wantedBy(ar *v1alpha1.AccessRequest) (*rights, error) {
	if ar.Spec.OIDC != nil {
		return oidcRights(ar.Spec.OIDC, r.Hash(ar))
	}
	return tokenRights(ar.Spec.Token, r.Hash(ar))
}
