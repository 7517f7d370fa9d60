// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
)

func TestHolds_NoRuleIsHeldByWhoHasNone(t *testing.T) {
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

// recorder keeps the last question.
type recorder struct {
	at.Authorizer
	got authorizer.Attributes
}

func (r *recorder) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.got = a
	return authorizer.DecisionNoOpinion, "", nil
}

func TestHolds_AsksAsTheAPIServerDoesForARequest(t *testing.T) {
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

func TestHolds_AnErrorEndsTheSearchSoThatADeadAuthorizerIsWaitedForOnce(t *testing.T) {
	a := &at.Authorizer{Err: errors.New("connection refused"), Grants: at.Labels("b")}
	held, err := permission.Holds(t.Context(), a, at.User, at.Labels("a", "b")...)
	if held != nil || err == nil || len(a.Asked) != 1 {
		t.Errorf("got %v, %v after %q", held, err, a.Names())
	}
}

func TestDenied_OneRefusalNamesAllThatIsMissing(t *testing.T) {
	denied := permission.For(at.User)
	a := at.Request{Object: at.Cluster("c1")}.Attributes()
	if err := denied.Error(a); err != nil {
		t.Fatalf("nothing is missing: %v", err)
	}
	denied.Lacks("do this", at.Label("a:b"), nil)
	denied.Lacks("do that", at.Label(`c:"`), errors.New("connection refused"))
	err := denied.Error(a)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a 403", err)
	}
	for _, want := range []string{`user "ann" cannot do this or do that`, `["a:b"]`, `["c:\""]`, "connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestRule_IsWrittenAsItStandsInARole(t *testing.T) {
	for want, rule := range map[string]permission.Rule{
		`{apiGroups: ["g"], resources: ["r/s"], resourceNames: ["n"], verbs: ["v"]}`:                  {Verb: "v", Group: "g", Resource: "r", Subresource: "s", Name: "n"},
		`{apiGroups: ["g"], resources: ["r"], resourceNames: ["n"], verbs: ["v"]} in the namespace a`: {Verb: "v", Group: "g", Resource: "r", Name: "n", Namespace: "a"},
		// What is yet to get its name.
		`{apiGroups: ["g"], resources: ["r"], verbs: ["v"]}`: {Verb: "v", Group: "g", Resource: "r"},
	} {
		if got := rule.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
