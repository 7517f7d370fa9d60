// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	kept  = 10 * time.Second
	never = time.Hour
)

// front is an authorizer with configurable results.
type front struct {
	allows bool
	err    error
	asked  int
	// meanwhile is called between the request and the response.
	meanwhile func()
}

func (f *front) authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	f.asked++
	allows, err := f.allows, f.err
	if f.meanwhile != nil {
		f.meanwhile()
	}
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case allows:
		return authorizer.DecisionAllow, "because", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// fixture is an authorizer whose rules have been unchanged for long.
type fixture struct {
	t        *testing.T
	front    *front
	rules    *RuleHistory
	bindings *store[*rbacv1.ClusterRoleBinding]
	roles    *store[*rbacv1.ClusterRole]
	version  int
	authorizer.Authorizer
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, front: &front{}, rules: NewRules(kept)}
	f.bindings = newStore(f.rules, f.rules.holders.SetClusterRoleBinding)
	f.roles = newStore[*rbacv1.ClusterRole](f.rules, nil)
	f.Authorizer = Cached(authorizer.AuthorizerFunc(f.front.authorize), f.rules, kept, kept)
	f.must(f.bindings.Replace(nil, ""))
	f.must(f.roles.Replace(nil, ""))
	f.must(newStore[*rbacv1.Role](f.rules, nil).Replace(nil, ""))
	f.must(newStore(f.rules, f.rules.holders.SetRoleBinding).Replace(nil, ""))
	time.Sleep(never)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// bind sends the event of a binding to the role viewer.
func (f *fixture) bind(name string, subject rbacv1.Subject) {
	f.t.Helper()
	f.must(f.bindings.Add(f.binding(name, subject)))
}

func (f *fixture) binding(name string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	f.version++
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(f.version)},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "viewer"}, Subjects: []rbacv1.Subject{subject},
	}
}

func (f *fixture) role() *rbacv1.ClusterRole {
	f.version++
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer", ResourceVersion: fmt.Sprint(f.version)}}
}

var ann = &user.DefaultInfo{Name: "ann", Groups: []string{"team"}}

func userNamed(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: "User", Name: name} }
func groupNamed(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }

// wants verifies whether ann is allowed, and whether that calls the front.
func (f *fixture) wants(what string, allowed, asks bool) {
	f.t.Helper()
	before := f.front.asked
	decision, _, err := f.Authorize(f.t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", ResourceRequest: true})
	f.must(err)
	if got := decision == authorizer.DecisionAllow; got != allowed {
		f.t.Errorf("%s: allowed %t, want %t", what, got, allowed)
	}
	if asked := f.front.asked > before; asked != asks {
		f.t.Errorf("%s: asked the front %t, want %t", what, asked, asks)
	}
}

func TestAnswers_AreCachedWhileRulesAreEqual(t *testing.T) {
	changes := map[string]func(*fixture){
		"a binding to the user":     func(f *fixture) { f.bind("new", userNamed("ann")) },
		"a binding to a group":      func(f *fixture) { f.bind("new", groupNamed("team")) },
		"a binding without ann now": func(f *fixture) { f.bind("old", userNamed("eve")) },
		"a binding that is gone":    func(f *fixture) { f.must(f.bindings.Delete(f.binding("old", userNamed("ann")))) },
		"the role":                  func(f *fixture) { f.must(f.roles.Update(f.role())) },
		"the role that is gone":     func(f *fixture) { f.must(f.roles.Delete(f.role())) },
		// This is like a time without a connection to the front.
		"a list with another binding":   func(f *fixture) { f.must(f.bindings.Replace([]any{f.binding("old", userNamed("ann"))}, "")) },
		"a list without the binding":    func(f *fixture) { f.must(f.bindings.Replace(nil, "")) },
		"a list without the role":       func(f *fixture) { f.must(f.roles.Replace(nil, "")) },
		"a list with another role":      func(f *fixture) { f.must(f.roles.Replace([]any{f.role()}, "")) },
		"a list with one more, of team": func(f *fixture) { f.must(f.bindings.Replace([]any{f.binding("new", groupNamed("team"))}, "")) },
	}
	for what, change := range changes {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, allowed before: %t", what, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.must(f.roles.Add(f.role()))
					f.bind("old", userNamed("ann"))
					time.Sleep(never)
					f.front.allows = before
					f.wants("first", before, true)
					f.wants("again", before, false)
					time.Sleep(time.Second)
					f.front.allows = !before
					f.wants("before the change is seen", before, false)
					change(f)
					f.wants("after", !before, true)
				})
			})
		}
	}
}

// TestAnswers_NamespaceInvalidatesOnlyItsOwn: an admin of a namespace may bind any user there, and all users at once, at any rate.
func TestAnswers_NamespaceInvalidatesOnlyItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		asks := func(namespace string) bool {
			t.Helper()
			before := f.front.asked
			_, _, err := f.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", Namespace: namespace, ResourceRequest: true})
			f.must(err)
			return f.front.asked > before
		}
		bindings, roles := newStore(f.rules, f.rules.holders.SetRoleBinding), newStore[*rbacv1.Role](f.rules, nil)
		object := func() metav1.ObjectMeta {
			f.version++
			return metav1.ObjectMeta{Namespace: "dev", Name: "r", ResourceVersion: fmt.Sprint(f.version)}
		}
		binding := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "viewer"},
			Subjects: []rbacv1.Subject{groupNamed("team"), userNamed("ann")}}
		for _, change := range []struct {
			what string
			do   func()
		}{
			{"a RoleBinding", func() { binding.ObjectMeta = object(); f.must(bindings.Add(binding)) }},
			{"a Role", func() { f.must(roles.Add(&rbacv1.Role{ObjectMeta: object()})) }},
			{"the ClusterRole that is bound there", func() { f.must(f.roles.Update(f.role())) }},
			{"the Role, gone", func() { f.must(roles.Delete(&rbacv1.Role{ObjectMeta: object()})) }},
			{"the RoleBinding, gone", func() { f.must(bindings.Delete(binding)) }},
		} {
			for _, namespace := range []string{"", "qa", "dev"} {
				asks(namespace)
			}
			time.Sleep(time.Second)
			change.do()
			for namespace, want := range map[string]bool{"": false, "qa": false, "dev": true} {
				if got := asks(namespace); got != want {
					t.Errorf("%s in dev: a question about %q asks the front: %t, want %t", change.what, namespace, got, want)
				}
			}
			time.Sleep(never)
		}
	})
}

// TestAnswers_UnrelatedChangeInvalidatesNone: while clusters join, thousands of bindings are created for their agents.
func TestAnswers_UnrelatedChangeInvalidatesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.wants("first", false, true)
		old := f.binding("old", userNamed("bob"))
		f.must(f.bindings.Replace([]any{old}, ""))
		for i := range 2000 {
			f.bind(fmt.Sprintf("agent-%d", i), groupNamed(fmt.Sprintf("cluster-%d", i)))
			time.Sleep(time.Millisecond)
		}
		f.wants("again", false, false)
	})
}

func TestAnswers_UnchangedListInvalidatesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		binding := f.binding("b", userNamed("ann"))
		f.must(f.bindings.Add(binding))
		time.Sleep(never)
		f.wants("first", false, true)
		f.must(f.bindings.Replace([]any{binding}, ""))
		f.must(f.bindings.Update(binding))
		f.wants("again", false, false)
	})
}

func TestAnswers_AnswerOlderThanChangeIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.front.allows = true
		f.front.meanwhile = func() {
			f.front.meanwhile = nil
			f.front.allows = false
			time.Sleep(time.Second)
			f.bind("b", userNamed("ann"))
		}
		f.wants("while it changes", true, true)
		f.wants("then", false, true)
	})
}

// TestAnswers_StaleAnswersAreBounded: the front observes a change later than this server. Its wrong decisions are not
// cached for long.
func TestAnswers_StaleAnswersAreBounded(t *testing.T) {
	for _, lag := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.front.allows = true
			f.wants("before", true, true)
			f.bind("b", userNamed("ann"))
			changed := time.Now()
			last, asked := changed, f.front.asked
			for time.Since(changed) < 2*kept {
				f.front.allows = time.Since(changed) < lag
				decision, _, _ := f.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", ResourceRequest: true})
				if decision == authorizer.DecisionAllow {
					last = time.Now()
				}
				time.Sleep(100 * time.Microsecond)
			}
			if wrong := last.Sub(changed); wrong > 2*lag {
				t.Errorf("a front that is %s late: wrong for %s", lag, wrong)
			}
			// Each user who is affected by a change causes new reviews, but not for each request forever.
			asked = f.front.asked - asked
			if asked > 25 {
				t.Errorf("a front that is %s late: asked %d times in %s", lag, asked, 2*kept)
			}
		})
	}
}

func TestAnswers_CacheTTLIsLimitedByFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.front.meanwhile = func() { time.Sleep(3 * time.Second) }
		f.wants("first", false, true)
		f.front.meanwhile = nil
		time.Sleep(kept - 3*time.Second - time.Millisecond)
		f.wants("just before its time is up", false, false)
		time.Sleep(time.Millisecond)
		f.wants("then", false, true)
	})
}

func TestAnswers_NothingIsCachedBeforeSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, front: &front{}, rules: NewRules(kept)}
		f.Authorizer = Cached(authorizer.AuthorizerFunc(f.front.authorize), f.rules, kept, kept)
		stores := []interface{ Replace([]any, string) error }{
			newStore[*rbacv1.Role](f.rules, nil), newStore[*rbacv1.ClusterRole](f.rules, nil),
			newStore(f.rules, f.rules.holders.SetRoleBinding), newStore(f.rules, f.rules.holders.SetClusterRoleBinding),
		}
		for _, s := range stores {
			time.Sleep(never)
			if f.rules.Ready() == nil {
				t.Error("is ready too early")
			}
			f.wants("too early", false, true)
			f.wants("too early", false, true)
			f.must(s.Replace(nil, ""))
			f.must(s.Replace(nil, "")) // one kind twice is not two kinds
		}
		f.must(f.rules.Ready())
		time.Sleep(time.Second)
		f.wants("ready", false, true)
		f.wants("ready", false, false)
	})
}

func TestAnswers_ErrorsAreNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.front.err = errors.New("connection refused")
		decision, _, err := f.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", ResourceRequest: true})
		if decision == authorizer.DecisionAllow || err == nil {
			t.Errorf("got %v, %v", decision, err)
		}
		f.front.err, f.front.allows = nil, true
		f.wants("after an error", true, true)
	})
}

// TestAnswers_CacheKeyIsWholeReview verifies that a request that differs in anything that is sent to the front needs its own review.
func TestAnswers_CacheKeyIsWholeReview(t *testing.T) {
	base := func() authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "ann", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"x", "y"}}},
			Verb: "get", Namespace: "n", APIGroup: "g", APIVersion: "v1", Resource: "r", Subresource: "s", Name: "o",
			ResourceRequest: true, Path: "/p",
			FieldSelectorRequirements: fields.Requirements{{Operator: selection.Equals, Field: "f", Value: "v"}},
			LabelSelectorRequirements: requirements(t, "l=v"),
		}
	}
	others := map[string]func(*authorizer.AttributesRecord){
		"no user":          func(a *authorizer.AttributesRecord) { a.User = nil },
		"user":             func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).Name = "eve" },
		"uid":              func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).UID = "2" },
		"fewer groups":     func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).Groups = []string{"a"} },
		"groups run on":    func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).Groups = []string{"ab"} },
		"extra":            func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).Extra["k"] = []string{"xy"} },
		"extra key":        func(a *authorizer.AttributesRecord) { a.User.(*user.DefaultInfo).Extra["k2"] = nil },
		"verb":             func(a *authorizer.AttributesRecord) { a.Verb = "list" },
		"namespace":        func(a *authorizer.AttributesRecord) { a.Namespace = "m" },
		"group":            func(a *authorizer.AttributesRecord) { a.APIGroup = "h" },
		"version":          func(a *authorizer.AttributesRecord) { a.APIVersion = "v2" },
		"resource":         func(a *authorizer.AttributesRecord) { a.Resource = "rs"; a.Subresource = "" },
		"subresource":      func(a *authorizer.AttributesRecord) { a.Subresource = "" },
		"name":             func(a *authorizer.AttributesRecord) { a.Name = "p" },
		"path":             func(a *authorizer.AttributesRecord) { a.Path = "/q" },
		"no resource":      func(a *authorizer.AttributesRecord) { a.ResourceRequest = false },
		"field operator":   func(a *authorizer.AttributesRecord) { a.FieldSelectorRequirements[0].Operator = selection.NotEquals },
		"field value":      func(a *authorizer.AttributesRecord) { a.FieldSelectorRequirements[0].Value = "w" },
		"no fields":        func(a *authorizer.AttributesRecord) { a.FieldSelectorRequirements = nil },
		"unreadable field": func(a *authorizer.AttributesRecord) { a.FieldSelectorParsingErr = errors.New("x") },
		"label":            func(a *authorizer.AttributesRecord) { a.LabelSelectorRequirements = requirements(t, "l in (v,w)") },
		"no labels":        func(a *authorizer.AttributesRecord) { a.LabelSelectorRequirements = nil },
		"unreadable label": func(a *authorizer.AttributesRecord) { a.LabelSelectorParsingErr = errors.New("x") },
	}
	if one, same := digest(base()), digest(base()); one != same {
		t.Error("one question is two")
	}
	for what, change := range others {
		other := base()
		change(&other)
		if digest(base()) == digest(other) {
			t.Errorf("another %s is the same question", what)
		}
	}
}

func requirements(t *testing.T, selector string) labels.Requirements {
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := parsed.Requirements()
	return r
}

// TestRules_ForgetOldChanges verifies that changes are forgotten when no cached decision can be older.
func TestRules_ForgetOldChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range 10000 {
			f.bind(fmt.Sprintf("b%d", i), userNamed(fmt.Sprintf("u%d", i)))
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(f.rules.recent) + len(f.rules.older); n > 2200 {
			t.Errorf("remembers %d changes of 100 s, want those of 20 s", n)
		}
	})
}
