// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agents authorizes the agents of clusters in hub-apiserver: they may do what the table has for their own cluster, and nothing else, whatever
// RBAC allows. So the front can authorize all agents by one role.
package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Name is the authorizer's name in metrics.
const Name = "clusterhub.dev/agents"

// right is a permission of an agent on the cluster-scoped object that has the name of its cluster.
type right struct {
	group, resource, subresource string
	verbs                        []string
	// inNamespace reports whether it is for all objects in the namespace with the name of the cluster instead.
	inNamespace bool
	// nameless reports whether the request need not have a name: an object that is created has its name in the body, which an admission plugin
	// checks.
	nameless bool
	// whenAccepted reports whether the cluster must be accepted.
	whenAccepted bool
}

// rights are all permissions of agents, except those on labels. An agent that is not accepted may read that it is not.
var rights = []right{
	{group: cluster.GroupName, resource: "managedclusters", verbs: []string{"get", "list", "watch"}},
	{group: cluster.GroupName, resource: "managedclusters", verbs: []string{"update"}, whenAccepted: true},
	{group: cluster.GroupName, resource: "managedclusters", subresource: "status", verbs: []string{"patch", "update"}, whenAccepted: true},
	{group: cluster.GroupName, resource: "managedclusters", subresource: "leave", verbs: []string{"update"}, whenAccepted: true},
	// Agents change only the finalizer and the status of a work, as the admission plugin agentworks ensures.
	{group: work.GroupName, resource: "manifestworks", verbs: []string{"get", "list", "watch", "update", "patch"}, inNamespace: true, whenAccepted: true},
	{group: work.GroupName, resource: "manifestworks", subresource: "status", verbs: []string{"patch", "update"}, inNamespace: true, whenAccepted: true},
	// The admission plugin nodeaccess checks that the edge node is empty and belongs to this cluster.
	{group: edge.GroupName, resource: "edgenodes", verbs: []string{"get", "list", "watch"}, whenAccepted: true},
	{group: edge.GroupName, resource: "edgenodes", verbs: []string{"create"}, nameless: true, whenAccepted: true},
	{group: edge.GroupName, resource: "edgenodes", subresource: "status", verbs: []string{"patch", "update"}, whenAccepted: true},
}

// Authorizer allows agents what they may do, and denies them all else in its API groups. It has no opinion about other users, other groups, and
// paths.
type Authorizer struct {
	// Clusters gets the clusters of the hub. If it is nil, no agent may write.
	Clusters rest.Getter

	groups, labels []string
	live           *liveReads
}

// New returns the authorizer for these API groups. Agents may set and remove labels with these keys.
func New(groups, labels []string) *Authorizer {
	return &Authorizer{groups: groups, labels: labels, live: newLiveReads()}
}

// Authorizer returns the interface that the union of the server's authorizers needs.
func (a *Authorizer) Authorizer() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(a.authorize)
}

const (
	noOpinion = authorizer.DecisionNoOpinion
	allow     = authorizer.DecisionAllow
	deny      = authorizer.DecisionDeny
)

func (a *Authorizer) authorize(ctx context.Context, request authorizer.Attributes) (authorizer.Decision, string, error) {
	who := request.GetUser()
	if who == nil || !request.IsResourceRequest() {
		return noOpinion, "", nil
	}
	name, agent := registration.AgentCluster(who.GetName(), who.GetGroups())
	if !agent || !slices.Contains(a.groups, request.GetAPIGroup()) {
		return noOpinion, "", nil
	}
	if name == "" {
		return deny, "the user is an agent, but its groups and its name do not say of which one cluster", nil
	}
	if key, asked := labelKey(request); asked {
		if !slices.Contains(a.labels, key) {
			return noOpinion, "", nil
		}
		return a.whenAccepted(ctx, name, "agents may set this label of their own cluster")
	}
	for i := range rights {
		if r := &rights[i]; r.covers(request, name) {
			const reason = "it is the cluster of this agent"
			if !r.whenAccepted {
				return allow, reason, nil
			}
			return a.whenAccepted(ctx, name, reason)
		}
	}
	return deny, fmt.Sprintf("an agent of cluster %[1]q may get, list and watch the ManagedCluster %[1]q by its name and, while it is accepted, "+
		"update it and its status, leave, get, list, watch, update and patch the ManifestWorks in the namespace %[1]q, and their status, "+
		"and get, list and watch the EdgeNode %[1]q, create it empty and update its status: this request is something else, and RBAC cannot allow it to an agent", name), nil
}

func (r *right) covers(request authorizer.Attributes, name string) bool {
	ours := request.GetNamespace() == "" && (request.GetName() == name || r.nameless && request.GetName() == "")
	if r.inNamespace {
		ours = request.GetNamespace() == name
	}
	return ours && request.GetResource() == r.resource &&
		request.GetSubresource() == r.subresource && request.GetAPIGroup() == r.group && slices.Contains(r.verbs, request.GetVerb())
}

// labelKey returns the key of the label that a permission is for, which the admission plugin managedclusterlabel checks. The name of the permission
// does not contain the cluster: the authorization of the write has checked that it is the agent's own.
func labelKey(request authorizer.Attributes) (key string, ok bool) {
	if request.GetVerb() != "create" || request.GetResource() != "managedclusters" || request.GetSubresource() != "label" ||
		request.GetAPIGroup() != cluster.GroupName || request.GetNamespace() != "" {
		return "", false
	}
	key, _, _ = strings.Cut(request.GetName(), ":")
	return key, true
}

// whenAccepted allows a request by the agents of an accepted cluster. The watch cache may not have a new acceptance yet, so if it has none, the
// cluster is read from etcd. It may not have a denial yet either, as with RBAC.
func (a *Authorizer) whenAccepted(ctx context.Context, name, reason string) (authorizer.Decision, string, error) {
	accepted, err := a.accepts(ctx, name, "0")
	if err == nil && !accepted && a.live.allow(name) {
		accepted, err = a.accepts(ctx, name, "")
	}
	switch {
	case err != nil:
		return deny, "", fmt.Errorf("whether cluster %q is accepted could not be read, so the request of its agent is refused: %w", name, err)
	case !accepted:
		return deny, fmt.Sprintf("cluster %[1]q is not accepted: its agent may get, list and watch the ManagedCluster %[1]q, and nothing more "+
			"until an admin of the hub accepts it", name), nil
	}
	return allow, reason, nil
}

func (a *Authorizer) accepts(ctx context.Context, name, resourceVersion string) (bool, error) {
	if a.Clusters == nil {
		return false, apierrors.NewServiceUnavailable("the server is still starting: try again in a few seconds")
	}
	object, err := a.Clusters.Get(ctx, name, &metav1.GetOptions{ResourceVersion: resourceVersion})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	found, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return false, fmt.Errorf("expected a ManagedCluster, got %T", object)
	}
	return found.Spec.HubAcceptsClient, nil
}
