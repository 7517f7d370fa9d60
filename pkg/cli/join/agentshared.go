// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// maxShared is the number of bindings that an error names at most.
const maxShared = 3

// checkShared refuses an agent of the whole cluster in a namespace where users other than admins of the cluster could act as it. It checks the
// subjects of the RoleBindings there: a subject with the same permissions by a ClusterRoleBinding has them in every namespace, including those of
// other agents.
func checkShared(ctx context.Context, m *managed) error {
	bindings := &rbacv1.RoleBindingList{}
	if err := m.List(ctx, bindings, client.InNamespace(m.namespace)); err != nil {
		if apierrors.IsForbidden(err) {
			return m.askFor(ctx, fmt.Sprintf("this user may not list rolebindings in the namespace %s, to check whether others could act as the agent there "+
				"(nothing was created)", m.namespace))
		}
		return m.Explain(err)
	}
	var shared []string
	for i := range bindings.Items {
		who, right, err := sharedBy(ctx, m, &bindings.Items[i])
		if err != nil {
			return err
		}
		if right != "" {
			shared = append(shared, fmt.Sprintf("RoleBinding %s lets %s %s", command.Printable(bindings.Items[i].Name), command.Printable(who), right))
		}
	}
	if len(shared) == 0 {
		return nil
	}
	if more := len(shared) - maxShared; more > 0 {
		shared = append(shared[:maxShared], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("others could act as an agent of the whole cluster in namespace %s: %s (nothing was created). Omit --%s and --%s to install it in %s, "+
		"use a namespace of its own, or omit --%[4]s for an agent of this namespace alone", m.namespace, strings.Join(shared, "; "), namespaceFlag, wholeFlag,
		registration.AgentNamespace)
}

// sharedBy returns a subject of a binding that is neither the agent nor an admin of the cluster, and a permission by which it can act as the agent.
// The permission is empty if there is no such subject.
func sharedBy(ctx context.Context, m *managed, binding *rbacv1.RoleBinding) (who, right string, err error) {
	rules, err := rulesOf(ctx, m, binding)
	if err != nil {
		return "", "", err
	}
	for i := range rules {
		right = impersonationRight(&rules[i])
		if right != "" {
			break
		}
	}
	if right == "" {
		return "", "", nil
	}
	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == m.namespace && subject.Name == registration.AgentServiceAccount {
			continue
		}
		admin, err := isClusterAdmin(ctx, m, subject)
		if err != nil {
			return "", "", err
		}
		if !admin {
			return kit.DescribeSubjects([]rbacv1.Subject{subject}), right, nil
		}
	}
	return "", "", nil
}

// rulesOf returns the rules of the binding's role, or nil if the role does not exist.
func rulesOf(ctx context.Context, m *managed, binding *rbacv1.RoleBinding) ([]rbacv1.PolicyRule, error) {
	var rules *[]rbacv1.PolicyRule
	var object client.Object
	key := client.ObjectKey{Name: binding.RoleRef.Name}
	if binding.RoleRef.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		object, rules = role, &role.Rules
	} else {
		role := &rbacv1.Role{}
		object, rules, key.Namespace = role, &role.Rules, binding.Namespace
	}
	err := m.Get(ctx, key, object)
	if apierrors.IsForbidden(err) {
		return nil, m.askFor(ctx, fmt.Sprintf("this user may not get the %s %s, to check whether others could act as the agent in namespace %s (nothing was created)",
			binding.RoleRef.Kind, command.Printable(key.Name), m.namespace))
	}
	return *rules, m.Explain(client.IgnoreNotFound(err))
}

var (
	// reads are the verbs that read an object.
	reads = []string{"get", "list", "watch"}
	// connects are the subresources by which a read runs commands in a pod, or connects to it.
	connects = []string{"*", "exec", "attach", "portforward", "proxy"}
	// harmless are the resources that may be written next to an agent: they neither run anything nor contain credentials.
	harmless = []string{"events", "leases"}
)

// impersonationRight returns a permission of the rule that lets its holder act as a ServiceAccount of the namespace, or "". Every permission that is not known
// to be harmless counts: the controller of a custom resource may run pods, or copy Secrets.
func impersonationRight(rule *rbacv1.PolicyRule) string {
	verbs := strings.Join(rule.Verbs, ", ")
	reading := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reads, verb) })
	for _, resource := range rule.Resources {
		base, sub, _ := strings.Cut(resource, "/")
		switch {
		case slices.Contains(harmless, resource):
		case reading && base != "*" && base != "secrets" && !slices.Contains(connects, sub):
		default:
			return command.Printable(verbs + " " + resource)
		}
	}
	return ""
}

// isClusterAdmin reports whether the cluster's authorizers allow a subject everything. It returns false if the user may not check that.
func isClusterAdmin(ctx context.Context, m *managed, subject rbacv1.Subject) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}}}
	switch subject.Kind {
	case rbacv1.UserKind:
		review.Spec.User = subject.Name
	case rbacv1.GroupKind:
		review.Spec.Groups = []string{subject.Name}
	case rbacv1.ServiceAccountKind:
		review.Spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
		review.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + subject.Namespace, "system:authenticated"}
	default:
		return false, nil
	}
	kube, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return false, err
	}
	answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting the admins of the cluster: %w", m.Explain(err))
	}
	return answer.Status.Allowed, nil
}
