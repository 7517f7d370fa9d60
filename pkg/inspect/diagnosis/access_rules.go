// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// RBACRules are the rules of RBAC that the user may read. The roles and bindings are in the namespace of the question.
type RBACRules struct {
	ClusterRoles        Read[[]rbacv1.ClusterRole]
	ClusterRoleBindings Read[[]rbacv1.ClusterRoleBinding]
	Roles               Read[[]rbacv1.Role]
	RoleBindings        Read[[]rbacv1.RoleBinding]
}

// Grant is a binding that gives a permission to a subject.
type Grant struct {
	// Binding and Role are kind and name, such as "ClusterRoleBinding admins".
	Binding, Role string
	Subject       rbacv1.Subject
	Rule          rbacv1.PolicyRule
}

// String describes the grant.
func (g Grant) String() string {
	return fmt.Sprintf("%s of %s to %s: %s", g.Binding, g.Role, subjectText(g.Subject), policyText(&g.Rule))
}

func subjectText(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return "service account " + s.Namespace + ":" + s.Name
	}
	return strings.ToLower(s.Kind) + " " + s.Name
}

func policyText(r *rbacv1.PolicyRule) string {
	names := ""
	if len(r.ResourceNames) > 0 {
		names = fmt.Sprintf("resourceNames: [%s], ", shortened(r.ResourceNames))
	}
	return fmt.Sprintf("{apiGroups: [%s], resources: [%s], %sverbs: [%s]}", shortened(r.APIGroups), shortened(r.Resources), names, shortened(r.Verbs))
}

// hidden returns which rules could not be read that could grant a permission.
func (r *RBACRules) hidden(p rbac.Permission) (why []string) {
	for _, w := range []string{r.ClusterRoles.Why(), r.ClusterRoleBindings.Why()} {
		if w != "" {
			why = append(why, w)
		}
	}
	if p.Namespace == "" {
		return why
	}
	for _, w := range []string{r.Roles.Why(), r.RoleBindings.Why()} {
		if w != "" {
			why = append(why, w)
		}
	}
	return why
}

// grants returns all grants of a permission by the rules that may be read.
func (r *RBACRules) grants(p rbac.Permission) (all []Grant) {
	rules := map[string][]rbacv1.PolicyRule{}
	clusterRoles, _ := r.ClusterRoles.Get()
	for i := range clusterRoles {
		rules["ClusterRole "+clusterRoles[i].Name] = clusterRoles[i].Rules
	}
	add := func(binding string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		role := ref.Kind + " " + ref.Name
		for i := range rules[role] {
			if !p.AllowedBy(&rules[role][i]) {
				continue
			}
			for _, s := range subjects {
				all = append(all, Grant{binding, role, s, rules[role][i]})
			}
			return
		}
	}
	bindings, _ := r.ClusterRoleBindings.Get()
	for i := range bindings {
		add("ClusterRoleBinding "+bindings[i].Name, bindings[i].RoleRef, bindings[i].Subjects)
	}
	if p.Namespace == "" {
		return all
	}
	roles, _ := r.Roles.Get()
	for i := range roles {
		if roles[i].Namespace == p.Namespace {
			rules["Role "+roles[i].Name] = roles[i].Rules
		}
	}
	local, _ := r.RoleBindings.Get()
	for i := range local {
		if local[i].Namespace != p.Namespace {
			continue
		}
		subjects := slices.Clone(local[i].Subjects)
		for j := range subjects {
			if subjects[j].Kind == rbacv1.ServiceAccountKind && subjects[j].Namespace == "" {
				subjects[j].Namespace = p.Namespace
			}
		}
		add("RoleBinding "+p.Namespace+"/"+local[i].Name, local[i].RoleRef, subjects)
	}
	return all
}

// names returns the resourceNames for which cluster-wide rules give a user a permission, sorted and without duplicates.
func (r *RBACRules) names(p rbac.Permission, user string, groups []string) (names []string) {
	bound := map[string]bool{}
	bindings, _ := r.ClusterRoleBindings.Get()
	for i := range bindings {
		if slices.ContainsFunc(bindings[i].Subjects, func(s rbacv1.Subject) bool { return isOne(s, user, groups) }) {
			bound[bindings[i].RoleRef.Name] = true
		}
	}
	roles, _ := r.ClusterRoles.Get()
	for i := range roles {
		for j := range roles[i].Rules {
			rule := &roles[i].Rules[j]
			for _, p.Name = range rule.ResourceNames {
				if bound[roles[i].Name] && p.AllowedBy(rule) {
					names = append(names, p.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isOne reports whether a subject is a user, by the name or by a group.
func isOne(s rbacv1.Subject, user string, groups []string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == user
	case rbacv1.GroupKind:
		return slices.Contains(groups, s.Name)
	case rbacv1.ServiceAccountKind:
		return s.Namespace != "" && user == "system:serviceaccount:"+s.Namespace+":"+s.Name
	}
	return false
}

// Holders returns the subjects that have a permission, without duplicates. It omits the service accounts of Kubernetes itself, some of which may do
// everything. The result is hidden if not all rules may be read.
func (r *RBACRules) Holders(spellings ...rbac.Permission) Read[[]string] {
	var who []string
	for _, p := range spellings {
		if why := r.hidden(p); len(why) > 0 {
			return Hidden[[]string](why[0])
		}
		for _, g := range r.grants(p) {
			text := subjectText(g.Subject)
			if !slices.Contains(who, text) && !strings.HasPrefix(text, "service account kube-system:") {
				who = append(who, text)
			}
		}
	}
	// Users come before the components of Kubernetes and of the hub.
	slices.SortStableFunc(who, func(a, b string) int { return rankHolder(a) - rankHolder(b) })
	return Found(who)
}

func rankHolder(text string) int {
	switch {
	case strings.HasPrefix(text, "service account "):
		return 2
	case strings.Contains(text, " system:"):
		return 1
	}
	return 0
}

// GroupsOf returns the given groups and those that the user is always in.
func GroupsOf(user string, named []string) []string {
	groups := slices.Clone(named)
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	all := "system:authenticated"
	if user == "system:anonymous" {
		all = "system:unauthenticated"
	}
	if !slices.Contains(groups, all) {
		groups = append(groups, all)
	}
	return groups
}
