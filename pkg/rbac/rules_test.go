// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// world is one role and one binding, and the user of the request. By default alice is bound to a role on the set "red", and is the user.
type world struct {
	role    *rbacv1.ClusterRole
	binding *rbacv1.ClusterRoleBinding
	who     user.Info
	// extra are additional roles and bindings.
	extra []any
}

func (w *world) rule() *rbacv1.PolicyRule { return &w.role.Rules[0] }

func (w *world) names() Names {
	index := NewIndex(getSets)
	for _, object := range append([]any{w.role, w.binding}, w.extra...) {
		switch object := object.(type) {
		case *rbacv1.ClusterRole:
			index.SetClusterRole(object)
		case *rbacv1.ClusterRoleBinding:
			index.SetClusterRoleBinding(object)
		}
	}
	return index.Snapshot().NamesFor(w.who)
}

var (
	none = NamesOf()
	red  = NamesOf("red")
	all  = Names{All: true}
)

// Each case has a twin, which differs from it in one detail and must have a different result. This shows that the case can fail: it depends on that
// detail and not on something that is always true.
var rules = []struct {
	name string
	is   func(*world)
	want Names
	// but is applied after is.
	but  func(*world)
	then Names
}{
	// Verbs, groups, resources: k8s.io/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go.
	{"the verb is listed",
		func(w *world) { w.rule().Verbs = []string{"list", "get"} }, red,
		func(w *world) { w.rule().Verbs = []string{"list", "watch", "create", "GET", "g*", ""} }, none},
	{"the verb * is any verb",
		func(w *world) { w.rule().Verbs = []string{"*"} }, red,
		func(w *world) { w.rule().Verbs = nil }, none},
	{"the group is listed",
		func(w *world) { w.rule().APIGroups = []string{"", testGroup} }, red,
		func(w *world) {
			w.rule().APIGroups = []string{"", "open-cluster-management.io", "*.open-cluster-management.io"}
		}, none},
	{"the group * is any group",
		func(w *world) { w.rule().APIGroups = []string{"*"} }, red,
		func(w *world) { w.rule().APIGroups = nil }, none},
	{"the resource is listed",
		func(w *world) { w.rule().Resources = []string{"pods", "managedclustersets"} }, red,
		func(w *world) { w.rule().Resources = []string{"managedclusters"} }, none},
	{"the resource * is any resource",
		func(w *world) { w.rule().Resources = []string{"*"} }, red,
		func(w *world) { w.rule().Resources = nil }, none},
	{"a subresource of the resource is another resource",
		func(w *world) { w.rule().Resources = []string{"managedclustersets/bind"} }, none,
		func(w *world) { w.rule().Resources = []string{"managedclustersets/bind", "managedclustersets"} }, red},
	{"a subresource of any resource is another resource",
		func(w *world) { w.rule().Resources = []string{"*/bind", "*/", "*/*", "managedclustersets/*"} }, none,
		func(w *world) { w.rule().Resources = []string{"*/bind", "*"} }, red},
	{"verb, group and resource are of one rule",
		func(w *world) {
			other := rule("red")
			other.Verbs, w.rule().Resources = []string{"list"}, []string{"managedclusters"}
			w.role.Rules = append(w.role.Rules, other)
		}, none,
		func(w *world) { w.role.Rules[1].Verbs = []string{"get"} }, red},
	{"a rule on URLs is not one on resources",
		func(w *world) {
			w.role.Rules[0] = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}
		}, none,
		func(w *world) { w.role.Rules[0] = rule() }, all},

	// Names.
	{"no names are all names",
		func(w *world) { w.rule().ResourceNames = nil }, all,
		func(w *world) { w.rule().ResourceNames = []string{""} }, NamesOf("")},
	{"an empty list of names is all names",
		func(w *world) { w.rule().ResourceNames = []string{} }, all,
		func(w *world) { w.rule().ResourceNames = []string{"red"} }, red},
	{"the name * is literal",
		func(w *world) { w.rule().ResourceNames = []string{"*"} }, NamesOf("*"),
		func(w *world) { w.rule().ResourceNames = nil }, all},
	{"a name with a * at its end is literal",
		func(w *world) { w.rule().ResourceNames = []string{"red*"} }, NamesOf("red*"),
		func(w *world) { w.rule().ResourceNames = []string{"red*", "red"} }, NamesOf("red", "red*")},
	{"the rules of a role add up, in order and once",
		func(w *world) { w.role.Rules = append(w.role.Rules, rule("red", "blue"), rule("blue")) }, NamesOf("blue", "red"),
		func(w *world) { w.role.Rules = w.role.Rules[:1] }, red},
	{"one rule on all names outdoes those on some",
		func(w *world) { w.role.Rules = append(w.role.Rules, rule(), rule("blue")) }, all,
		func(w *world) { w.role.Rules[1].Verbs = []string{"list"} }, NamesOf("blue", "red")},
	{"a role without rules grants nothing",
		func(w *world) { w.role.Rules = nil }, none,
		func(w *world) { w.role.Rules = []rbacv1.PolicyRule{rule("red")} }, red},
	{"an aggregated role grants the rules that it has been given, not those that it selects",
		func(w *world) {
			w.role.Rules = nil
			w.role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
			w.extra = []any{role("selected", rule("blue"))}
		}, none,
		func(w *world) { w.role.Rules = []rbacv1.PolicyRule{rule("blue")} }, NamesOf("blue")},

	// Subjects: appliesToUser in k8s.io/kubernetes pkg/registry/rbac/validation/rule.go.
	{"a user is meant by name",
		func(*world) {}, red,
		func(w *world) { w.who = someone("Alice") }, none},
	{"a group is meant by its name",
		func(w *world) { w.binding.Subjects[0] = groupSubject("staff"); w.who = someone("bob", "dev", "staff") }, red,
		func(w *world) { w.who = someone("bob", "dev") }, none},
	{"a user is not a group of the same name",
		func(w *world) { w.binding.Subjects[0] = groupSubject("alice") }, none,
		func(w *world) { w.who = someone("alice", "alice") }, red},
	{"a group is not a user of the same name",
		func(w *world) { w.who = someone("bob", "alice") }, none,
		func(w *world) { w.binding.Subjects[0] = groupSubject("alice") }, red},
	{"the name * is no wildcard for users",
		func(w *world) { w.binding.Subjects[0] = userSubject("*") }, none,
		func(w *world) { w.who = someone("*") }, red},
	{"the name * is no wildcard for groups",
		func(w *world) { w.binding.Subjects[0] = groupSubject("*"); w.who = someone("alice", "staff") }, none,
		func(w *world) { w.who = someone("alice", "staff", "*") }, red},
	{"a service account is a user with a long name",
		func(w *world) {
			w.binding.Subjects[0], w.who = serviceAccount("ns", "bot"), someone("system:serviceaccount:ns:bot")
		}, red,
		func(w *world) { w.who = someone("system:serviceaccount:other:bot") }, none},
	{"a service account may be bound as the user with the long name",
		func(w *world) {
			w.binding.Subjects[0], w.who = userSubject("system:serviceaccount:ns:bot"), someone("system:serviceaccount:ns:bot")
		}, red,
		func(w *world) { w.binding.Subjects[0] = userSubject("bot") }, none},
	{"a service account without a namespace is nobody, because a ClusterRoleBinding has none to lend",
		func(w *world) {
			w.binding.Subjects[0], w.who = serviceAccount("", "bot"), someone("system:serviceaccount::bot")
		}, none,
		func(w *world) { w.binding.Subjects[0] = userSubject("system:serviceaccount::bot") }, red},
	{"service accounts are bound by their groups",
		func(w *world) {
			w.binding.Subjects[0] = groupSubject("system:serviceaccounts:ns")
			w.who = someone("system:serviceaccount:ns:bot", "system:serviceaccounts", "system:serviceaccounts:ns")
		}, red,
		func(w *world) { w.who = someone("system:serviceaccount:ns:bot", "system:serviceaccounts") }, none},
	{"the namespace of a user or a group says nothing",
		func(w *world) { w.binding.Subjects[0].Namespace = "ns" }, red,
		func(w *world) { w.binding.Subjects[0].Kind = rbacv1.ServiceAccountKind }, none},
	{"a subject of another kind is nobody",
		func(w *world) { w.binding.Subjects[0].Kind = "user" }, none,
		func(w *world) { w.binding.Subjects[0].Kind = "User" }, red},
	{"the apiGroup of a subject is not looked at",
		func(w *world) { w.binding.Subjects[0].APIGroup = "example.com" }, red,
		func(w *world) { w.binding.Subjects[0].Name = "bob" }, none},
	{"a binding is for each of its subjects",
		func(w *world) {
			w.binding.Subjects = append([]rbacv1.Subject{groupSubject("x"), userSubject("bob")}, w.binding.Subjects...)
		}, red,
		func(w *world) { w.binding.Subjects = w.binding.Subjects[:2] }, none},
	{"a subject named twice is there once",
		func(w *world) { w.binding.Subjects = append(w.binding.Subjects, w.binding.Subjects...) }, red,
		func(w *world) { w.binding.Subjects = nil }, none},

	// roleRef: GetRoleReferenceRules in the same file.
	{"a roleRef is to a ClusterRole",
		func(w *world) { w.binding.RoleRef.Kind = "Role" }, none,
		func(w *world) { w.binding.RoleRef.Kind = "ClusterRole" }, red},
	{"the apiGroup of a roleRef is not looked at",
		func(w *world) { w.binding.RoleRef.APIGroup = "example.com" }, red,
		func(w *world) { w.binding.RoleRef.Kind = "" }, none},
	{"a role that does not exist grants nothing",
		func(w *world) { w.binding.RoleRef.Name = "gone" }, none,
		func(w *world) { w.extra = []any{role("gone", rule("blue"))} }, NamesOf("blue")},

	// The union.
	{"the user and all groups add up",
		func(w *world) {
			w.who = someone("alice", "dev", "ops")
			w.extra = []any{
				role("g", rule("green", "red")), bind("g", "g", groupSubject("dev")),
				role("b", rule("blue")), bind("b", "b", groupSubject("ops")),
			}
		}, NamesOf("blue", "green", "red"),
		func(w *world) { w.who = someone("alice", "ops") }, NamesOf("blue", "red")},
	{"a group on all names outdoes what the user has by name",
		func(w *world) {
			w.who = someone("alice", "ops")
			w.extra = []any{role("all", rule()), bind("all", "all", groupSubject("ops"))}
		}, all,
		func(w *world) { w.who = someone("alice", "dev") }, red},
	{"two bindings of one subject add up",
		func(w *world) { w.extra = []any{role("b", rule("blue")), bind("b", "b", userSubject("alice"))} }, NamesOf("blue", "red"),
		func(w *world) { w.extra = w.extra[:1] }, red},
	{"a group that the user has twice counts once",
		func(w *world) { w.binding.Subjects[0] = groupSubject("dev"); w.who = someone("bob", "dev", "dev") }, red,
		func(w *world) { w.who = someone("bob") }, none},

	// The group that every authorizer allows: k8s.io/kubernetes pkg/kubeapiserver/authorizer/reload.go.
	{"system:masters may everything without a binding",
		func(w *world) { w.who = someone("root", "dev", "system:masters") }, all,
		func(w *world) { w.who = someone("system:masters") }, none},
	{"system:masters may everything whatever it is bound to",
		func(w *world) {
			w.binding.Subjects[0] = groupSubject("system:masters")
			w.who = someone("root", "system:masters")
		}, all,
		func(w *world) { w.binding.Subjects[0] = userSubject("root"); w.who = someone("root") }, red},
	{"nobody may nothing",
		func(w *world) { w.who = nil }, none,
		func(w *world) { w.who = someone("alice") }, red},
}

func TestRules(t *testing.T) {
	for _, test := range rules {
		t.Run(test.name, func(t *testing.T) {
			fresh := func() *world {
				return &world{role: role("r", rule("red")), binding: bind("first", "r", userSubject("alice")), who: someone("alice")}
			}
			w := fresh()
			test.is(w)
			if got := w.names(); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", show(got), show(test.want))
			}

			twin := fresh()
			test.is(twin)
			test.but(twin)
			if got := twin.names(); !got.Equal(test.then) {
				t.Errorf("the twin got %v, want %v", show(got), show(test.then))
			}
			if test.want.Equal(test.then) {
				t.Errorf("both sides want %v: the case cannot fail", show(test.want))
			}
		})
	}
}
