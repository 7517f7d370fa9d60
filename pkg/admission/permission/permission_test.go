// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func TestHolds_NoneWithoutRules(t *testing.T) {
	for name, a := range map[string]*at.Authorizer{
		"no opinion": {},
		"a denial":   {Denials: at.Labels("a", "b")},
		"an error":   {Err: errors.New("connection refused")},
	} {
		if held, _ := permission.Holds(t.Context(), a, at.User, at.Labels("a", "b")...); held != nil {
			t.Errorf("%s: holds %v", name, held)
		}
	}
	a := &at.Authorizer{Grants: at.Labels("a")}
	if held, _ := permission.Holds(t.Context(), a, at.User); held != nil || len(a.Asked) > 0 {
		t.Errorf("asked for nothing, holds %v", held)
	}
	if held, _ := permission.Holds(t.Context(), a, &user.DefaultInfo{Name: "bob"}, at.Label("a")); held != nil {
		t.Errorf("another user holds %v", held)
	}
}

// recorder keeps the last call.
type recorder struct {
	at.Authorizer
	got authorizer.Attributes
}

func (r *recorder) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.got = a
	return authorizer.DecisionNoOpinion, "", nil
}

func TestHolds_SendsAPIServerAttributes(t *testing.T) {
	want := authorizer.AttributesRecord{
		User: at.User, Verb: "create", APIGroup: "cluster.open-cluster-management.io", APIVersion: "v1",
		Resource: "managedclusters", Subresource: "label", Name: "a:b", ResourceRequest: true,
	}
	a := &recorder{}
	_, _ = permission.Holds(t.Context(), a, at.User, at.Label("a:b"))
	if !reflect.DeepEqual(a.got, want) {
		t.Errorf("got  %+v\nwant %+v", a.got, want)
	}
}

func TestHolds_StopsAtFirstError(t *testing.T) {
	a := &at.Authorizer{Err: errors.New("connection refused"), Grants: at.Labels("b")}
	held, err := permission.Holds(t.Context(), a, at.User, at.Labels("a", "b")...)
	if held != nil || err == nil || len(a.Asked) != 1 {
		t.Errorf("got %v, %v after %q", held, err, a.Names())
	}
}

func TestDecision_RefusalNamesAllMissing(t *testing.T) {
	g := permission.NewGuard("x")
	denied := g.Decide(at.Request{Object: at.Cluster("c1")}.Attributes())
	denied.Uses(at.Label("held"))
	if err := denied.End(t.Context()); err != nil {
		t.Fatalf("nothing is missing: %v", err)
	}
	denied.Lacks("do this", at.Label("a:b"), nil)
	denied.Lacks("do that", at.Label(`c:"`), errors.New("connection refused"))
	err := denied.End(t.Context())
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a 403", err)
	}
	for _, want := range []string{`user "ann" cannot do this or do that`, `["a:b"]`, `["c:\""]`, "connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestRequire_NamesFirstRule(t *testing.T) {
	request := at.Request{Object: at.Cluster("c1")}.Attributes()
	for held, rule := range map[string]rbac.Permission{"the first": at.Label("a"), "another spelling": at.Label("b")} {
		g := permission.NewGuard("x")
		g.SetAuthorizer(&at.Authorizer{Grants: []rbac.Permission{rule}})
		if err := g.Require(t.Context(), request, "do this", at.Labels("a", "b")...); err != nil {
			t.Errorf("%s: %v", held, err)
		}
	}
	g := permission.NewGuard("x")
	g.SetAuthorizer(&at.Authorizer{})
	err := g.Require(t.Context(), request, "do this", at.Labels("a", "b")...)
	if rules := at.MissingRules(t, err); !slices.Equal(rules, at.Labels("a")) || !strings.Contains(err.Error(), "cannot do this") {
		t.Errorf("got %v", err)
	}
	g.SetAuthorizer(&at.Authorizer{Err: errors.New("connection refused")})
	if err := g.Require(t.Context(), request, "do this", at.Label("a")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without an answer: %v", err)
	}
}

func TestObjects_OfOneKind(t *testing.T) {
	clusters := cluster.Resource("managedclusters")
	is, was := at.Cluster("c1", "a", "b"), at.Cluster("c1")
	for _, subresource := range []string{"", "status"} {
		updated, old, err := permission.Objects[cluster.ManagedCluster](at.Request{Object: is, Old: was, Subresource: subresource}.Attributes(), clusters)
		if updated != is || old != was || err != nil {
			t.Errorf("an update of %q: %v, %v, %v", subresource, updated, old, err)
		}
	}
	updated, old, err := permission.Objects[cluster.ManagedCluster](at.Request{Object: is}.Attributes(), clusters)
	if updated != is || old == nil || old.Name != "" || err != nil {
		t.Errorf("a create: %v, %v, %v", updated, old, err)
	}
	set := &cluster.ManagedClusterSet{}
	updated, old, err = permission.Objects[cluster.ManagedCluster](at.Request{Object: set, Resource: "managedclustersets"}.Attributes(), clusters)
	if updated != nil || old != nil || err != nil {
		t.Errorf("another kind: %v, %v, %v", updated, old, err)
	}
	for name, r := range map[string]at.Request{"object": {Object: set}, "old object": {Object: is, Old: set}} {
		updated, old, err := permission.Objects[cluster.ManagedCluster](r.Attributes(), clusters)
		if updated != nil || old != nil || !apierrors.IsInternalError(err) {
			t.Errorf("another %s: %v, %v, %v", name, updated, old, err)
		}
	}
}

func TestRule_FormattedAsInRole(t *testing.T) {
	for want, rule := range map[string]rbac.Permission{
		`{apiGroups: ["g"], resources: ["r/s"], resourceNames: ["n"], verbs: ["v"]}`:                  {Verb: "v", Group: "g", Resource: "r", Subresource: "s", Name: "n"},
		`{apiGroups: ["g"], resources: ["r"], resourceNames: ["n"], verbs: ["v"]} in the namespace a`: {Verb: "v", Group: "g", Resource: "r", Name: "n", Namespace: "a"},
		// This object has no name yet.
		`{apiGroups: ["g"], resources: ["r"], verbs: ["v"]}`: {Verb: "v", Group: "g", Resource: "r"},
	} {
		if got := rule.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
