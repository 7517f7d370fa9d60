// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

type whyAccessOptions struct {
	*whyOptions
	groups    []string
	namespace string
}

func (g *global) newWhyAccessCommand() *cobra.Command {
	o := &whyAccessOptions{whyOptions: g.newWhy()}
	cmd := &cobra.Command{
		Use:   "access USER VERB KEY=VALUE|SET|CLUSTER",
		Short: "Say which rule allows a user something, or which is missing",
		Long: "why access says which binding of which role gives a user a right on a label, a set or a cluster, or which rule is missing, and who could make it. " +
			"A set and a cluster of the same name are told apart as set/NAME and cluster/NAME; set/NAME/clusters is a subresource.\n\n" +
			"Verbs: write for a label; get, update, patch, delete, bind and deliver for a set; get, update, patch, delete, accept, leave and deliver for a cluster. " +
			"To deliver is to write ManifestWorks.\n\n" +
			"The front kube-apiserver is asked, as far as you may create subjectaccessreviews; for yourself you may. The rules are those that you may list." + whyExit,
		Example: example(`
kubectl hub why access dana write cluster.open-cluster-management.io/clusterset=payments
kubectl hub why access dana bind payments -n team-a --group dev-team
kubectl hub why access system:serviceaccount:ci:deployer deliver cluster/c1`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 3 {
				return fmt.Errorf("%s takes a user, a verb, and a label, a set or a cluster, not %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: g.completeAccess,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1], args[2]) },
	}
	cmd.Flags().StringSliceVar(&o.groups, "group", nil, "Groups of the user. Your own are known, and those that all users and service accounts have.")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Namespace that a set is to be bound to, for the verb bind.")
	o.out.addTo(cmd)
	return cmd
}

// completeAccess completes the verb, and the names of sets and clusters.
func (g *global) completeAccess(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 1:
		verbs := slices.Concat(diagnosis.AccessVerbs(diagnosis.Target{Label: "x"}), diagnosis.AccessVerbs(diagnosis.Target{Set: "x"}), diagnosis.AccessVerbs(diagnosis.Target{Cluster: "x"}))
		slices.Sort(verbs)
		return slices.Compact(verbs), cobra.ShellCompDirectiveNoFileComp
	case 2:
		return g.names(setAndClusterNames)(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func setAndClusterNames(ctx context.Context, h *hub) (names []string, err error) {
	sets, setErr := setNames(ctx, h)
	clusters, clusterErr := clusterNames(ctx, h)
	if setErr != nil && clusterErr != nil {
		return nil, errors.Join(setErr, clusterErr)
	}
	for _, set := range sets {
		names = append(names, "set/"+set)
	}
	for _, cluster := range clusters {
		names = append(names, "cluster/"+cluster)
	}
	return names, nil
}

func (o *whyAccessOptions) run(ctx context.Context, user, verb, what string) error {
	h, err := o.hub()
	if err != nil {
		return err
	}
	target, err := h.target(ctx, what)
	if err != nil {
		return err
	}
	if target.Namespace = o.namespace; target.Cluster != "" {
		sets, err := h.setsOf(ctx, target.Cluster)
		if err != nil {
			return err
		}
		target.SetsOf, _ = sets.Get()
	}
	ways, err := diagnosis.Ways(verb, target)
	if err != nil {
		return err
	}
	facts := diagnosis.AccessFacts{User: user, Groups: o.groups, Verb: verb, Target: target, Ways: ways}
	namespace := o.namespace
	if target.Cluster != "" {
		namespace = target.Cluster
	}
	if facts.Rules, err = h.rules(ctx, namespace); err != nil {
		return err
	}
	if err := h.review(ctx, &facts); err != nil {
		return err
	}
	a := diagnosis.OfAccess(facts)
	return o.finish(&a)
}

// target reads what a question is about.
func (h *hub) target(ctx context.Context, what string) (t diagnosis.Target, err error) {
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
	_, clusterErr := reach(h, func(c clusters) (*clusterv1.ManagedCluster, error) { return c.Get(ctx, what) })
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

// rules are those that the user may list; with a namespace, also those of this namespace.
func (h *hub) rules(ctx context.Context, namespace string) (rules diagnosis.Rules, err error) {
	roles, err := pages(func(options metav1.ListOptions) ([]rbacv1.ClusterRole, string, error) {
		page, err := h.kube.RbacV1().ClusterRoles().List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return page.Items, page.Continue, nil
	})
	if rules.ClusterRoles, err = look(roles, err, "list clusterroles"); err != nil {
		return rules, err
	}
	bindings, err := pages(func(options metav1.ListOptions) ([]rbacv1.ClusterRoleBinding, string, error) {
		page, err := h.kube.RbacV1().ClusterRoleBindings().List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return page.Items, page.Continue, nil
	})
	if rules.ClusterRoleBindings, err = look(bindings, err, "list clusterrolebindings"); err != nil || namespace == "" {
		return rules, err
	}
	local, err := h.kube.RbacV1().Roles(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		local = &rbacv1.RoleList{}
	}
	if rules.Roles, err = look(local.Items, err, "list roles in the namespace "+namespace); err != nil {
		return rules, err
	}
	bound, err := h.kube.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		bound = &rbacv1.RoleBindingList{}
	}
	rules.RoleBindings, err = look(bound.Items, err, "list rolebindings in the namespace "+namespace)
	return rules, err
}

// review asks the front for all permissions that could be needed. For themselves all users may.
func (h *hub) review(ctx context.Context, facts *diagnosis.AccessFacts) error {
	facts.Reviews = map[diagnosis.Permission]diagnosis.Read[diagnosis.Review]{}
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
				if facts.Reviews[p], err = look(answer, err, "create subjectaccessreviews, by which the front kube-apiserver says what another user may"); err != nil {
					return fmt.Errorf("asking for the rights of %s: %w", facts.User, err)
				}
			}
		}
	}
	return nil
}

// reviewOf asks for one permission: for the user itself, for any user, or for any user in a namespace, as far as that is allowed.
func (h *hub) reviewOf(ctx context.Context, facts *diagnosis.AccessFacts, p diagnosis.Permission, self bool) (*authorizationv1.SubjectAccessReviewStatus, error) {
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
