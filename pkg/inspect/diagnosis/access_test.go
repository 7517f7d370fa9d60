// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

const hubGroup = "cluster.open-cluster-management.io"

// rulesWith returns rules that bind a role with a rule to a subject, and a role that may create bindings to dana.
func rulesWith(subject rbacv1.Subject, rule rbacv1.PolicyRule) RBACRules {
	role := func(name string, rule rbacv1.PolicyRule) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	}
	bind := func(name string, s rbacv1.Subject) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{s}}
	}
	binder := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: []string{"*"}}
	return RBACRules{
		ClusterRoles:        Found([]rbacv1.ClusterRole{role("some", rule), role("binder", binder)}),
		ClusterRoleBindings: Found([]rbacv1.ClusterRoleBinding{bind("some", subject), bind("binder", rbacv1.Subject{Kind: "User", Name: "dana"})}),
		Roles:               Found([]rbacv1.Role(nil)), RoleBindings: Found([]rbacv1.RoleBinding(nil)),
	}
}

// ask asks without reviews, so that the rules alone count.
func ask(t *testing.T, user, verb string, target Target, rules RBACRules, groups ...string) Answer {
	t.Helper()
	ways, err := Ways(verb, target)
	if err != nil {
		t.Fatal(err)
	}
	facts := AccessFacts{User: user, Groups: groups, Verb: verb, Target: target, Ways: ways, Rules: rules}
	facts.AddMoves()
	return OfAccess(facts)
}

func TestOfAccess_ByRules(t *testing.T) {
	bob := rbacv1.Subject{Kind: "User", Name: "bob"}
	rule := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{hubGroup}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	none := Target{Label: setLabel + "=default"}
	label, set, cluster := Target{Label: setLabel + "=s"}, Target{Set: "s"}, Target{Cluster: "c1", SetsOf: []string{"s"}}
	for name, test := range map[string]struct {
		user, verb string
		target     Target
		subject    rbacv1.Subject
		rule       rbacv1.PolicyRule
		allowed    bool
		says       []string
	}{
		"a label":               {"bob", "write", label, bob, rule("create", "managedclusters/label", setLabel+":s"), true, []string{"ClusterRoleBinding some of ClusterRole some to user bob"}},
		"a label by all values": {"bob", "write", label, bob, rule("create", "managedclusters/label", setLabel+":*"), true, nil},
		"any label":             {"bob", "write", label, bob, rule("create", "*"), true, nil},
		"a label by join":       {"bob", "write", label, bob, rule("create", "managedclustersets/join", "s"), true, nil},
		"another label":         {"bob", "write", label, bob, rule("create", "managedclusters/label", setLabel+":other"), false, []string{`resources: ["managedclusters/label"], resourceNames: ["` + setLabel + `:s"]`, "user dana", "--resource-name=" + setLabel + ":s", "--user=bob"}},
		"default by another set": {"bob", "write", none, bob, rule("create", "managedclusters/label", setLabel+":*x", setLabel+":other"), true,
			[]string{"for clusters that move between default and the set *x"}},
		"default by itself": {"bob", "write", none, bob, rule("create", "managedclusters/label", setLabel+":default", setLabel+":other"), true, []string{", by the label"}},
		"default by another key": {"bob", "write", none, bob, rule("create", "managedclusters/label", "other:s"), false,
			[]string{"A rule for the label of another set would be enough to move clusters between default and that set."}},
		"default by others' rights": {"eve", "write", none, bob, rule("create", "managedclusters/label", setLabel+":other"), false, nil},
		"a set by that of default":  {"bob", "write", label, bob, rule("create", "managedclusters/label", setLabel+":default"), false, nil},
		"stars in names are names":  {"bob", "write", label, bob, rule("create", "managedclusters/label", "cluster*"), false, nil},
		"another verb":              {"bob", "write", label, bob, rule("update", "managedclusters/label"), false, nil},
		"another group of the API":  {"bob", "get", set, bob, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}}, false, nil},
		"the resource, not the sub": {"bob", "bind", set, bob, rule("create", "managedclustersets"), false, nil},
		"sub of all":                {"bob", "accept", cluster, bob, rule("update", "*/accept"), true, nil},
		"accept":                    {"bob", "accept", cluster, bob, rbacv1.PolicyRule{APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"}, Verbs: []string{"update"}}, true, nil},
		"a set":                     {"bob", "get", set, bob, rule("get", "managedclustersets", "s"), true, nil},
		"another set":               {"bob", "get", set, bob, rule("get", "managedclustersets", "t"), false, []string{"kubectl hub grant s --role viewer --user bob"}},
		"another user":              {"eve", "get", set, bob, rule("get", "managedclustersets"), false, nil},
		"a group":                   {"eve", "get", set, rbacv1.Subject{Kind: "Group", Name: "team"}, rule("get", "managedclustersets"), true, []string{"group team"}},
		"all users":                 {"eve", "get", set, rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, rule("get", "managedclustersets"), true, nil},
		"a service account":         {"system:serviceaccount:ci:d", "get", set, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ci", Name: "d"}, rule("get", "managedclustersets"), true, nil},
		"its namespace":             {"system:serviceaccount:ci:d", "get", set, rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:ci"}, rule("get", "managedclustersets"), true, nil},
		"without rights":            {"system:serviceaccount:ci:d", "get", set, bob, rule("get", "managedclustersets"), false, []string{"--serviceaccount ci:d"}},
		"a cluster by its set":      {"bob", "get", cluster, bob, rule("get", "managedclustersets/clusters", "s"), true, []string{"by the set s"}},
		"half of what that takes":   {"bob", "delete", cluster, bob, rule("get", "managedclustersets/clusters", "s"), false, []string{"The alternatives are not allowed either"}},
		"works":                     {"bob", "deliver", cluster, bob, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"manifestworks"}, Verbs: []string{"create"}}, true, nil},
		"no works":                  {"bob", "deliver", cluster, bob, rule("get", "x"), false, []string{"kubectl create role ", " -n c1"}},
		"a subresource":             {"bob", "get", Target{Set: "s", Subresource: "clusters"}, bob, rule("get", "managedclustersets/clusters", "s"), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, test.user, test.verb, test.target, rulesWith(test.subject, test.rule), "team")
			if (a.Finding == nil) != test.allowed || a.IsBlind() || strings.Contains(a.Verdict, "may not") == test.allowed {
				t.Fatalf("allowed is to be %t: %+v", test.allowed, a)
			}
			text := a.Verdict
			for _, s := range a.Steps {
				text += "\n" + s.Text
			}
			if f := a.Finding; f != nil {
				text += f.Cause + f.Turn + strings.Join(f.Fix, "\n")
			}
			for _, s := range test.says {
				if !strings.Contains(text, s) {
					t.Errorf("says\n%s\nwithout %q", text, s)
				}
			}
		})
	}
}

// TestOfAccess_InNamespace verifies that a role in a namespace grants nothing elsewhere.
func TestOfAccess_InNamespace(t *testing.T) {
	rules := rulesWith(rbacv1.Subject{Kind: "User", Name: "eve"}, rbacv1.PolicyRule{})
	rules.Roles = Found([]rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "r"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"}, Verbs: []string{"create"}}}}})
	rules.RoleBindings = Found([]rbacv1.RoleBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "d"}}}})
	if a := ask(t, "system:serviceaccount:c1:d", "deliver", Target{Cluster: "c1"}, rules); a.Finding != nil {
		t.Errorf("in the namespace: %+v", a.Finding)
	}
	if a := ask(t, "system:serviceaccount:c1:d", "deliver", Target{Cluster: "c2"}, rules); a.Finding == nil {
		t.Error("the role counts in another namespace")
	}
}

// TestOfAccess_ByReview verifies that the result of the front is used if there is one: another authorizer may disagree with the rules.
func TestOfAccess_ByReview(t *testing.T) {
	ways, _ := Ways("get", Target{Set: "s"})
	p := ways[0].Needs[0].Any[0]
	answer := func(review Read[Review], rules RBACRules) Answer {
		return OfAccess(AccessFacts{User: "bob", Verb: "get", Target: Target{Set: "s"}, Ways: ways, Reviews: map[rbac.Permission]Read[Review]{p: review}, Rules: rules})
	}
	has := rulesWith(rbacv1.Subject{Kind: "User", Name: "bob"}, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	none := RBACRules{ClusterRoles: Hidden[[]rbacv1.ClusterRole]("no roles"), ClusterRoleBindings: Hidden[[]rbacv1.ClusterRoleBinding]("no bindings")}
	if a := answer(Found(Review{}), has); a.Finding == nil {
		t.Error("the front refuses, and the rules count")
	}
	if a := answer(Found(Review{Allowed: true, Reason: "webhook"}), none); a.Finding != nil || a.IsBlind() || a.Steps[0].Text != "webhook" || !slices.Contains(a.Unseen, "no roles") {
		t.Errorf("the front allows: %+v", a)
	}
	if a := answer(Found(Review{}), none); a.Finding == nil || a.IsBlind() {
		t.Errorf("the front refuses, and the rules are hidden: %+v", a)
	}
	if a := answer(Hidden[Review]("no reviews"), none); !a.IsBlind() || !slices.Contains(a.Unseen, "no reviews") || !slices.Contains(a.Unseen, "no roles") {
		t.Errorf("nothing may be seen: %+v", a)
	}
	if a := answer(Hidden[Review]("no reviews"), rulesWith(rbacv1.Subject{Kind: "User", Name: "eve"}, rbacv1.PolicyRule{})); a.Finding == nil || !slices.Contains(a.Unseen, "no reviews") {
		t.Errorf("no rule, and the front was not asked: %+v", a)
	}
}

func TestWays_RejectInvalid(t *testing.T) {
	for _, test := range []struct {
		verb   string
		target Target
	}{{"delete", Target{Label: "a=b"}}, {"write", Target{Label: "=b"}}, {"write", Target{Set: "s"}}, {"accept", Target{Set: "s"}}, {"bind", Target{Cluster: "c"}}, {"", Target{Set: "s"}}} {
		if ways, err := Ways(test.verb, test.target); err == nil {
			t.Errorf("%s %s: %v", test.verb, test.target, ways)
		}
	}
	for _, target := range []Target{{Label: "a/b=c"}, {Label: setLabel + "=c"}, {Set: "s"}, {Cluster: "c"}} {
		for _, verb := range AccessVerbs(target) {
			if _, err := Ways(verb, target); err != nil {
				t.Errorf("%s %s: %v", verb, target, err)
			}
		}
	}
}
