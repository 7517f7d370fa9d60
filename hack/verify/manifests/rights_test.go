// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

// right is one verb on one resource. Without a namespace it holds everywhere, without a name for all objects.
type right struct{ namespace, group, resource, name, verb string }

func (r right) String() string {
	text := fmt.Sprintf("%s %s", r.verb, strings.TrimSuffix(r.resource+"."+r.group, "."))
	if r.name != "" {
		text += " " + r.name
	}
	return text + " in " + cmp.Or(r.namespace, "all namespaces")
}

// eachOf are the rights of a rule. It may name no objects.
func eachOf(namespace string, groups, resources, names, verbs []string) sets.Set[right] {
	if len(names) == 0 {
		names = []string{""}
	}
	all := sets.New[right]()
	for _, group := range groups {
		for _, resource := range resources {
			for _, name := range names {
				for _, verb := range verbs {
					all.Insert(right{namespace, group, resource, name, verb})
				}
			}
		}
	}
	return all
}

// stated are the rights that the controllers of a process state: those that a component grants, or, without one, all hubs.
func stated(rights []kit.Right, component string) sets.Set[right] {
	all := sets.New[right]()
	for _, r := range rights {
		if r.Component == component {
			all = all.Union(eachOf(r.Namespace, []string{r.Group}, []string{r.Resource}, r.Names, r.Verbs))
		}
	}
	return all
}

// granted are the rights that bindings give to a subject.
func granted(objects []runtime.Object, subject rbacv1.Subject) sets.Set[right] {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			rules["ClusterRole "+o.Name] = o.Rules
		case *rbacv1.Role:
			rules["Role "+o.Namespace+"/"+o.Name] = o.Rules
		}
	}
	all := sets.New[right]()
	bind := func(namespace, role string, subjects []rbacv1.Subject) {
		if !slices.Contains(subjects, subject) {
			return
		}
		for _, rule := range rules[role] {
			all = all.Union(eachOf(namespace, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs))
		}
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			bind("", "ClusterRole "+o.RoleRef.Name, o.Subjects)
		case *rbacv1.RoleBinding:
			role := o.RoleRef.Kind + " " + o.RoleRef.Name
			if o.RoleRef.Kind == "Role" {
				role = "Role " + o.Namespace + "/" + o.RoleRef.Name
			}
			bind(o.Namespace, role, o.Subjects)
		}
	}
	return all
}

// differences says what of the stated rights is not granted, and what is granted and not stated. Everybody has those of the
// group of authenticated users.
func differences(objects []runtime.Object, account string, want sets.Set[right]) (found []string) {
	has := granted(objects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: "clusterhub-system"})
	everybody := granted(objects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllAuthenticated})
	// By Kubernetes' own role system:basic-user.
	everybody.Insert(right{group: authenticationv1.GroupName, resource: "selfsubjectreviews", verb: "create"})
	for r := range want.Difference(has).Difference(everybody) {
		found = append(found, account+" lacks what a controller states: "+r.String())
	}
	for r := range has.Difference(want) {
		found = append(found, account+" has what no controller states: "+r.String())
	}
	slices.Sort(found)
	return found
}

// parse reads the flags of a Deployment.
func parse(t *testing.T, sets map[string]*pflag.FlagSet, objects []runtime.Object, deployment string) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets {
		flags.AddFlagSet(set)
	}
	for _, o := range objects {
		if d, ok := o.(*appsv1.Deployment); ok && d.Name == deployment {
			if err := flags.Parse(d.Spec.Template.Spec.Containers[0].Args); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no Deployment %s", deployment)
}

// processes are the processes of hub-controller-manager, by their ServiceAccounts, with the rights that they state. What runs in
// each, its flags say.
func processes(t *testing.T, objects []runtime.Object) map[string][]kit.Right {
	t.Helper()
	rights := map[string][]kit.Right{}
	for _, o := range objects {
		d, ok := o.(*appsv1.Deployment)
		if !ok || !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, "clusterhub/hub-controller-manager:") {
			continue
		}
		options := manager.NewOptions()
		parse(t, options.Flags().FlagSets, []runtime.Object{d}, d.Name)
		rights[d.Spec.Template.Spec.ServiceAccountName] = options.Rights()
	}
	if len(rights) < 2 {
		t.Fatalf("there are only the processes %v", rights)
	}
	return rights
}

// components returns the optional components of a hub, with their objects.
func components(t *testing.T) map[string][]runtime.Object {
	t.Helper()
	of := func(names ...string) []*unstructured.Unstructured {
		objects, err := deploy.Hub{Components: names}.Objects()
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	base, all := of(), map[string][]runtime.Object{}
	for _, name := range deploy.Components() {
		all[name] = typed(t, slices.DeleteFunc(of(name), func(o *unstructured.Unstructured) bool {
			return slices.ContainsFunc(base, func(b *unstructured.Unstructured) bool { return equality.Semantic.DeepEqual(b, o) })
		}))
	}
	return all
}

// What the controllers of a process state in their folders is what its roles grant: nothing is missing, and nothing is too much.
// hub-operator runs on clusters without a hub, from a folder of its own.
func TestRights_OfOperatorMatchDeclared(t *testing.T) {
	objects := built(t, "operator")
	options := operator.NewOptions()
	parse(t, options.Flags().FlagSets, objects, "hub-operator")
	want := stated(options.Rights(), "")
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "hub-operator", Namespace: "clusterhub-operator"}
	has := granted(objects, account)
	for r := range want.Difference(has) {
		t.Errorf("hub-operator lacks what a controller states: %s", r)
	}
	for r := range has.Difference(want) {
		t.Errorf("hub-operator has what no controller states: %s", r)
	}
	if len(has) < 50 {
		t.Errorf("it has only %d rights", len(has))
	}
}

// The controllers of hub-operator can be a part of hub-controller-manager. It then has the right to act as hub-operator besides, and no other;
// hub-operator has the same rights as in pods of its own.
func TestRights_OfHubWithOperator(t *testing.T) {
	base, more := built(t, "base"), built(t, "operator-in-hub")
	rights := func(controllers ...string) sets.Set[right] {
		o := manager.NewOptions()
		o.Controllers = controllers
		return stated(o.Rights(), "")
	}
	added := rights("klusterlets", "clustermanagers").Difference(rights())
	for _, difference := range differences(more, "hub-controller-manager", added) {
		t.Error(difference)
	}
	if len(added) != 1 {
		t.Errorf("it states %v", added)
	}
	for r := range rights("klusterlets", "clustermanagers").Difference(added).Difference(granted(base, rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Name: "hub-controller-manager", Namespace: "clusterhub-system"})) {
		t.Errorf("hub-controller-manager lacks %s", r)
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: operator.ServiceAccount, Namespace: operator.Namespace}
	// But those to ask who reads metrics: hub-controller-manager does that.
	want := granted(built(t, "operator"), account).Difference(eachOf("", []string{authenticationv1.GroupName}, []string{"tokenreviews"}, nil, []string{"create"}))
	if has := granted(more, account); !has.Equal(want) || len(has) < 50 {
		t.Errorf("hub-operator has %d rights there, and %d in pods of its own", len(has), len(want))
	}
}

func TestRights_MatchDeclared(t *testing.T) {
	base, components := built(t, "base"), components(t)
	for account, rights := range processes(t, base) {
		for _, difference := range differences(base, account, stated(rights, "")) {
			t.Error(difference)
		}
		for name, objects := range components {
			for _, difference := range differences(objects, account, stated(rights, name)) {
				t.Errorf("component %s: %s", name, difference)
			}
		}
		for _, r := range rights {
			if _, ok := components[r.Component]; !ok && r.Component != "" {
				t.Errorf("a controller of %s states rights by the component %q, which is not there", account, r.Component)
			}
		}
	}
}

// TestDifferences takes a rule from a role and adds one to it, for each process and each component.
func TestDifferences_DetectAddedAndRemovedRules(t *testing.T) {
	base, components := built(t, "base"), components(t)
	rights := processes(t, base)
	for name, test := range map[string]struct {
		account, component string
		objects            []runtime.Object
	}{
		"hub-controller-manager":   {"hub-controller-manager", "", base},
		"hub-certificate-approver": {"hub-certificate-approver", "", base},
		"auto-approval":            {"hub-controller-manager", "auto-approval", components["auto-approval"]},
		"leftovers":                {"hub-controller-manager", "leftovers", components["leftovers"]},
		"aws-auth":                 {"hub-controller-manager", "aws-auth", components["aws-auth"]},
		"per-cluster-roles":        {"hub-controller-manager", "per-cluster-roles", components["per-cluster-roles"]},
	} {
		want := stated(rights[test.account], test.component)
		tried := 0
		for _, o := range test.objects {
			var rules *[]rbacv1.PolicyRule
			var role string
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				rules, role = &o.Rules, o.Name
			case *rbacv1.Role:
				rules, role = &o.Rules, o.Name
			}
			if !strings.HasPrefix(role, "clusterhub:"+test.account) {
				continue
			}
			before := *rules
			for i, rule := range before {
				*rules = slices.Delete(slices.Clone(before), i, i+1)
				tried++
				if got := differences(test.objects, test.account, want); !slices.ContainsFunc(got, func(d string) bool { return strings.Contains(d, "lacks") }) {
					t.Errorf("%s: nothing is said of %s without the rule %v", name, role, rule)
				}
			}
			*rules = append(slices.Clone(before), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}})
			if got := differences(test.objects, test.account, want); len(got) != 1 || !strings.Contains(got[0], "has what no controller states: get deployments.apps") {
				t.Errorf("%s: of %s with another rule it is said: %q", name, role, got)
			}
			*rules = before
		}
		if tried == 0 {
			t.Errorf("%s: there are no rules to take away", name)
		}
	}
}
