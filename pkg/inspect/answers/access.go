// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// target reads what a question is about.
func (h *HubView) target(ctx context.Context, what string) (t diagnosis.Target, err error) {
	if strings.Contains(what, "=") {
		return diagnosis.Target{Label: what}, nil
	}
	kind, name, typed := strings.Cut(what, "/")
	if typed {
		name, t.Subresource, _ = strings.Cut(name, "/")
		switch {
		case name == "":
		case slices.Contains([]string{"set", "clusterset", "managedclusterset"}, kind):
			t.Set = name
			return t, nil
		case slices.Contains([]string{"cluster", "managedcluster"}, kind):
			t.Cluster = name
			return t, nil
		}
		return t, fmt.Errorf("%q is neither set/NAME nor cluster/NAME, nor a label KEY=VALUE", what)
	}
	_, setErr := h.clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, what, metav1.GetOptions{})
	_, clusterErr := h.Cluster(ctx, what)
	for _, err := range []error{setErr, clusterErr} {
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return t, err
		}
	}
	switch {
	case setErr == nil && clusterErr != nil:
		return diagnosis.Target{Set: what}, nil
	case clusterErr == nil && setErr != nil:
		return diagnosis.Target{Cluster: what}, nil
	case setErr == nil:
		return t, fmt.Errorf("there are a set and a cluster %s: write set/%[1]s or cluster/%[1]s", what)
	}
	return t, fmt.Errorf("there is neither a set nor a cluster %s that you may see: write set/%[1]s or cluster/%[1]s all the same, or KEY=VALUE for a label", what)
}

// rules returns the rules that the user may list; with a namespace, also those of this namespace.
func (h *HubView) rules(ctx context.Context, namespace string) (rules diagnosis.RBACRules, err error) {
	roles, err := paging.List(ctx, h.kube.RbacV1().ClusterRoles().List, metav1.ListOptions{})
	rules.ClusterRoles, err = asRead(roles.Items, err, "list clusterroles")
	if err != nil {
		return rules, err
	}
	bindings, err := paging.List(ctx, h.kube.RbacV1().ClusterRoleBindings().List, metav1.ListOptions{})
	rules.ClusterRoleBindings, err = asRead(bindings.Items, err, "list clusterrolebindings")
	if err != nil || namespace == "" {
		return rules, err
	}
	local, err := h.kube.RbacV1().Roles(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		local = &rbacv1.RoleList{}
	}
	rules.Roles, err = asRead(local.Items, err, "list roles in the namespace "+namespace)
	if err != nil {
		return rules, err
	}
	bound, err := h.kube.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		bound = &rbacv1.RoleBindingList{}
	}
	rules.RoleBindings, err = asRead(bound.Items, err, "list rolebindings in the namespace "+namespace)
	return rules, err
}

// review checks all permissions that could be needed with the front. All users may check their own.
func (h *HubView) review(ctx context.Context, facts *diagnosis.AccessFacts) error {
	facts.Reviews = map[rbac.Permission]diagnosis.Read[diagnosis.Review]{}
	self := false
	if me, err := h.kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil {
		self = me.Status.UserInfo.Username == facts.User && len(facts.Groups) == 0
		if self {
			facts.Groups = me.Status.UserInfo.Groups
		}
	}
	for _, way := range facts.Ways {
		for _, need := range way.Needs {
			for _, p := range need.Any {
				status, err := h.reviewOf(ctx, facts, p, self)
				answer := diagnosis.Review{}
				if err == nil {
					answer = diagnosis.Review{Allowed: status.Allowed, Reason: status.Reason}
				}
				facts.Reviews[p], err = asRead(answer, err, "create subjectaccessreviews, which show what another user may do")
				if err != nil {
					return fmt.Errorf("checking the rights of %s: %w", facts.User, err)
				}
			}
		}
	}
	return nil
}

// reviewOf checks one permission: of the user itself, of any user, or of any user in a namespace, depending on which review the user may create.
func (h *HubView) reviewOf(ctx context.Context, facts *diagnosis.AccessFacts, p rbac.Permission, self bool) (*authorizationv1.SubjectAccessReviewStatus, error) {
	attributes := &authorizationv1.ResourceAttributes{Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource, Namespace: p.Namespace, Name: p.Name}
	if self {
		answer, err := h.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return &answer.Status, nil
	}
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: attributes, User: facts.User, Groups: diagnosis.GroupsOf(facts.User, facts.Groups)}
	answer, err := h.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err == nil {
		return &answer.Status, nil
	}
	if p.Namespace == "" || !apierrors.IsForbidden(err) {
		return nil, err
	}
	local, err := h.kube.AuthorizationV1().LocalSubjectAccessReviews(p.Namespace).Create(ctx, &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &local.Status, nil
}

// Who is the query for the subjects that may do something with a cluster, and the rules that allow it.
type Who struct {
	// Verb is one of diagnosis.AccessVerbs.
	Verb string `json:"verb"`
	// By describes the necessary permissions.
	By string `json:"by"`
	// Holders are the subjects that have all of these permissions, users first.
	Holders []string `json:"holders"`
	// Unseen is the reason why they could not be read.
	Unseen string `json:"unseen,omitempty"`
}

// WhoMay returns the subjects that may do things with a cluster, as far as the user may read the rules of RBAC. It does not include what other
// authorizers allow.
func (h *HubView) WhoMay(ctx context.Context, cluster string) ([]Who, error) {
	target := diagnosis.Target{Cluster: cluster}
	sets, err := h.setsOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	target.SetsOf, _ = sets.Get()
	rules, err := h.rules(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var all []Who
	for _, verb := range diagnosis.AccessVerbs(target) {
		ways, err := diagnosis.Ways(verb, target)
		if err != nil {
			return nil, err
		}
		for _, way := range ways {
			all = append(all, holdersOf(&rules, verb, way))
		}
	}
	return all, nil
}

// holdersOf returns the subjects that meet all needs of a way.
func holdersOf(rules *diagnosis.RBACRules, verb string, way diagnosis.AccessWay) Who {
	w := Who{Verb: verb, Holders: []string{}}
	var names []string
	count := map[string]int{}
	var order []string
	for _, need := range way.Needs {
		names = append(names, need.Name)
		holders := rules.Holders(need.Any...)
		found, seen := holders.Get()
		if !seen {
			w.Unseen = holders.Why()
		}
		for _, who := range found {
			count[who]++
			if count[who] == 1 {
				order = append(order, who)
			}
		}
	}
	w.By = strings.Join(names, " and ")
	for _, who := range order {
		if count[who] == len(way.Needs) {
			w.Holders = append(w.Holders, who)
		}
	}
	return w
}
