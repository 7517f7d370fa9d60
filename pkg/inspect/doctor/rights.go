// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

const (
	// PermissionsMissing is a role or binding of a component that is not there, or does not give all that the component needs.
	PermissionsMissing diagnosis.ID = "PermissionsMissing"
	// PolicyMissing means that an admission policy that limits a component does not exist, or differs.
	PolicyMissing diagnosis.ID = "PolicyMissing"
)

// RightsKinds are the kinds that grant permissions, and PolicyKinds those that limit them.
var (
	RightsKinds = []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	PolicyKinds = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
)

func (h *Hub) rights() (found []diagnosis.Finding) {
	if !h.Rights.Seen || h.otherVersion() != "" {
		return nil
	}
	absent := func(o *unstructured.Unstructured) bool { return h.belongsToAbsent(o) }
	return missingRights(h.expected(RightsKinds...), h.Rights.Items, absent, turnAdmin)
}

// belongsToAbsent reports whether an object is for a component whose ServiceAccount does not exist.
func (h *Hub) belongsToAbsent(o *unstructured.Unstructured) bool {
	if !h.Accounts.Seen {
		return false
	}
	var bindings []*unstructured.Unstructured
	if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
		for _, b := range h.expected("ClusterRoleBinding", "RoleBinding") {
			name, _, _ := unstructured.NestedString(b.Object, "roleRef", "name")
			kind, _, _ := unstructured.NestedString(b.Object, "roleRef", "kind")
			if name == o.GetName() && kind == o.GetKind() && (kind == "ClusterRole" || b.GetNamespace() == o.GetNamespace()) {
				bindings = append(bindings, b)
			}
		}
	} else {
		bindings = append(bindings, o)
	}
	accounts, present := 0, 0
	for _, b := range bindings {
		for _, s := range subjectsOf(b) {
			if s.Kind != rbacv1.ServiceAccountKind {
				return false
			}
			accounts++
			if slices.Contains(h.Accounts.Items, s.Namespace+"/"+s.Name) {
				present++
			}
		}
	}
	return accounts > 0 && present == 0
}

func subjectsOf(o *unstructured.Unstructured) []rbacv1.Subject {
	b := rbacv1.ClusterRoleBinding{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b) != nil {
		return nil
	}
	return b.Subjects
}

// missingRights compares roles and bindings with the expected ones. It ignores additional permissions.
func missingRights(expected, have []*unstructured.Unstructured, skip func(*unstructured.Unstructured) bool, turn string) (found []diagnosis.Finding) {
	for _, want := range expected {
		if skip(want) {
			continue
		}
		f := diagnosis.Finding{ID: PermissionsMissing, Severity: diagnosis.Error, Object: reference(want), Turn: turn, Fix: []string{Show(want.GetKind(), want.GetNamespace(), want.GetName())}}
		is := sameObject(have, want)
		switch {
		case is == nil:
			f.Cause = fmt.Sprintf("The %s does not exist. %s", want.GetKind(), purpose(want))
		case strings.HasSuffix(want.GetKind(), "Binding"):
			missing := slices.DeleteFunc(subjectsOf(want), func(s rbacv1.Subject) bool { return slices.Contains(subjectsOf(is), s) })
			if len(missing) == 0 && equality.Semantic.DeepEqual(want.Object["roleRef"], is.Object["roleRef"]) {
				continue
			}
			f.Cause = "It does not bind what artifacts/deploy binds. " + purpose(want)
		default:
			rule := uncovered(rulesOf(want), rulesOf(is))
			if rule == nil || aggregated(is) {
				continue
			}
			f.Cause = fmt.Sprintf("It lacks a rule: %s. %s", ruleText(rule), purpose(want))
		}
		found = append(found, f)
	}
	return found
}

// purpose returns a sentence about the subjects that lack the permissions.
func purpose(o *unstructured.Unstructured) string {
	var who []string
	for _, s := range subjectsOf(o) {
		who = append(who, strings.ToLower(s.Kind)+" "+s.Name)
	}
	if len(who) == 0 {
		return "Its subjects do not have these rights."
	}
	role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
	return fmt.Sprintf("So %s does not have the rights of %s.", strings.Join(who, ", "), role)
}

func sameObject(all []*unstructured.Unstructured, o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, have := range all {
		if have.GetKind() == o.GetKind() && have.GetName() == o.GetName() && have.GetNamespace() == o.GetNamespace() {
			return have
		}
	}
	return nil
}

// reference returns KIND/NAME, with the namespace if there is one.
func reference(o *unstructured.Unstructured) string {
	text := strings.ToLower(o.GetKind()) + "/" + o.GetName()
	if o.GetNamespace() != "" {
		text += " in " + o.GetNamespace()
	}
	return text
}

func rulesOf(o *unstructured.Unstructured) []rbacv1.PolicyRule {
	role := rbacv1.ClusterRole{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) != nil {
		return nil
	}
	return role.Rules
}

// aggregated reports whether another controller sets the rules of a role.
func aggregated(o *unstructured.Unstructured) bool { return o.Object["aggregationRule"] != nil }

// uncovered returns the first of the rules that the others do not cover, or nil.
func uncovered(want, have []rbacv1.PolicyRule) *rbacv1.PolicyRule {
	for _, rule := range want {
		for _, verb := range rule.Verbs {
			if !coversAll(rule, verb, have) {
				return &rule
			}
		}
	}
	return nil
}

func coversAll(rule rbacv1.PolicyRule, verb string, have []rbacv1.PolicyRule) bool {
	for _, url := range rule.NonResourceURLs {
		if !slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool { return within(verb, r.Verbs) && within(url, r.NonResourceURLs) }) {
			return false
		}
	}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				if !slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool {
					return within(verb, r.Verbs) && within(group, r.APIGroups) && within(resource, r.Resources) &&
						(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
				}) {
					return false
				}
			}
		}
	}
	return true
}

func within(value string, in []string) bool {
	return slices.Contains(in, value) || slices.Contains(in, "*")
}

func ruleText(r *rbacv1.PolicyRule) string {
	if len(r.NonResourceURLs) > 0 {
		return strings.Join(r.Verbs, ", ") + " on " + strings.Join(r.NonResourceURLs, ", ")
	}
	text := fmt.Sprintf("%s on %s of the group %q", strings.Join(r.Verbs, ", "), strings.Join(r.Resources, ", "), strings.Join(r.APIGroups, ", "))
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	return text
}

func (h *Hub) policies() (found []diagnosis.Finding) {
	if !h.Policies.Seen || h.otherVersion() != "" {
		return nil
	}
	for _, want := range h.expected(PolicyKinds...) {
		f := diagnosis.Finding{ID: PolicyMissing, Severity: diagnosis.Error, Object: reference(want), Turn: turnAdmin, Fix: []string{Show(want.GetKind(), "", want.GetName())}}
		is := sameObject(h.Policies.Items, want)
		switch {
		case is == nil:
			f.Cause = fmt.Sprintf("The %s does not exist, so it does not limit the rights of the component: a client with the component's account can use all of them.", want.GetKind())
		case !hasFields(is.Object["spec"], want.Object["spec"]):
			f.Cause = "It differs from the one in artifacts/deploy, so it may allow requests that the other refuses."
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// hasFields reports whether an object has all desired fields. It ignores fields that only the server sets.
func hasFields(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		for key := range w {
			if !ok || !hasFields(h[key], w[key]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return false
		}
		for i := range w {
			if !hasFields(h[i], w[i]) {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(have, want)
}
