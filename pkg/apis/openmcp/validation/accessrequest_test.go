// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// validOIDC returns the example of the specification.
func validOIDC() *openmcp.OIDCConfig {
	return &openmcp.OIDCConfig{
		OIDCProviderConfig: openmcp.OIDCProviderConfig{
			Name: "my-oidc-provider", Issuer: "https://oidc.example.com", ClientID: "my-client-id",
			RoleBindings: []openmcp.RoleBindings{{
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "foo"}, {Kind: "Group", Name: "bar"}},
				RoleRefs: []openmcp.RoleRef{{Kind: "ClusterRole", Name: "my-cluster-role"}, {Kind: "Role", Name: "my-role", Namespace: "default"}},
			}},
		},
		Roles: []openmcp.PermissionsRequest{{Name: "my-admin", Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"},
		}}}},
	}
}

func token(f func(*openmcp.TokenConfig)) func(*openmcp.AccessRequest) {
	return func(r *openmcp.AccessRequest) { f(r.Spec.Token) }
}

func oidc(f func(*openmcp.OIDCConfig)) func(*openmcp.AccessRequest) {
	return func(r *openmcp.AccessRequest) {
		r.Spec.Token, r.Spec.OIDC = nil, validOIDC()
		f(r.Spec.OIDC)
	}
}

// permission changes the one permission of a token.
func permission(f func(*openmcp.PermissionsRequest)) func(*openmcp.AccessRequest) {
	return token(func(t *openmcp.TokenConfig) {
		t.Permissions = []openmcp.PermissionsRequest{{Rules: []rbacv1.PolicyRule{rule()}}}
		f(&t.Permissions[0])
	})
}

func roleRef(ref openmcp.RoleRef) func(*openmcp.AccessRequest) {
	return token(func(t *openmcp.TokenConfig) { t.RoleRefs = []openmcp.RoleRef{ref} })
}

func subject(s rbacv1.Subject) func(*openmcp.AccessRequest) {
	return oidc(func(o *openmcp.OIDCConfig) { o.RoleBindings[0].Subjects = []rbacv1.Subject{s} })
}

const (
	oneOf        = "spec: Invalid value: exactly one of spec.token or spec.oidc must be set"
	permissionAt = "spec.token.permissions[0]."
	bindingsAt   = "spec.oidc.roleBindings[0]."
)

func TestAccessRequest(t *testing.T) {
	for _, c := range []change[*openmcp.AccessRequest]{
		{"an empty token", func(*openmcp.AccessRequest) {}, nil},
		{"the example of OIDC", oidc(func(*openmcp.OIDCConfig) {}), nil},
		{"neither", func(r *openmcp.AccessRequest) { r.Spec.Token = nil }, []string{oneOf}},
		{"both", func(r *openmcp.AccessRequest) { r.Spec.OIDC = validOIDC() }, []string{oneOf}},
		{"references", func(r *openmcp.AccessRequest) {
			r.Spec.ClusterRef = &openmcp.ObjectReference{Namespace: "a", Name: "b"}
			r.Spec.RequestRef = &openmcp.ObjectReference{Namespace: "a", Name: "b"}
		}, nil},
		{"references of nothing", func(r *openmcp.AccessRequest) {
			r.Spec.ClusterRef, r.Spec.RequestRef = &openmcp.ObjectReference{Name: "a"}, &openmcp.ObjectReference{Namespace: "b"}
		}, []string{"spec.clusterRef.namespace: Required value", "spec.requestRef.name: Required value"}},

		{"no rule", permission(func(p *openmcp.PermissionsRequest) { p.Rules = []rbacv1.PolicyRule{} }), nil},
		{"null for rules", permission(func(p *openmcp.PermissionsRequest) { p.Rules = nil }), []string{permissionAt + "rules: Required value"}},
		{"no verbs", permission(func(p *openmcp.PermissionsRequest) { p.Rules[0].Verbs = []string{} }),
			[]string{permissionAt + "rules[0].verbs: Required value: must contain at least one verb"}},
		{"no groups", permission(func(p *openmcp.PermissionsRequest) { p.Rules[0].APIGroups = nil }), []string{permissionAt + "rules[0].apiGroups: Required value"}},
		{"no resources", permission(func(p *openmcp.PermissionsRequest) { p.Rules[0].Resources = nil }), []string{permissionAt + "rules[0].resources: Required value"}},
		{"URLs", permission(func(p *openmcp.PermissionsRequest) {
			p.Rules[0] = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}
		}), nil},
		{"URLs in a namespace", permission(func(p *openmcp.PermissionsRequest) {
			p.Namespace = "a"
			p.Rules[0] = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}
		}), []string{permissionAt + "rules[0].nonResourceURLs: Invalid value"}},
		{"URLs and resources", permission(func(p *openmcp.PermissionsRequest) { p.Rules[0].NonResourceURLs = []string{"/"} }),
			[]string{permissionAt + "rules[0].nonResourceURLs: Invalid value"}},
		{"a name with a colon", permission(func(p *openmcp.PermissionsRequest) { p.Name = "openmcp:a:b" }), nil},
		{"a name with a slash", permission(func(p *openmcp.PermissionsRequest) { p.Name = "a/b" }), []string{permissionAt + "name: Invalid value"}},
		{"a namespace of two", permission(func(p *openmcp.PermissionsRequest) { p.Namespace = "a,b" }), []string{permissionAt + "namespace: Invalid value"}},
		{"no verbs in a role of OIDC", oidc(func(o *openmcp.OIDCConfig) { o.Roles[0].Rules[0].Verbs = nil }),
			[]string{"spec.oidc.roles[0].rules[0].verbs: Required value"}},

		{"a ClusterRole", roleRef(openmcp.RoleRef{Kind: "ClusterRole", Name: "a"}), nil},
		{"a ClusterRole in a namespace", roleRef(openmcp.RoleRef{Kind: "ClusterRole", Name: "a", Namespace: "b"}), nil},
		{"a Role", roleRef(openmcp.RoleRef{Kind: "Role", Name: "a", Namespace: "b"}), nil},
		{"a Role in no namespace", roleRef(openmcp.RoleRef{Kind: "Role", Name: "a"}),
			[]string{"spec.token.roleRefs[0].namespace: Required value: namespace must be set if kind is 'Role'"}},
		{"a Role in a bad namespace", roleRef(openmcp.RoleRef{Kind: "Role", Name: "a", Namespace: "B"}), []string{"spec.token.roleRefs[0].namespace: Invalid value"}},
		{"no kind of a role", roleRef(openmcp.RoleRef{Name: "a"}), []string{"spec.token.roleRefs[0].kind: Required value"}},
		{"another kind", roleRef(openmcp.RoleRef{Kind: "Group", Name: "a"}), []string{`spec.token.roleRefs[0].kind: Unsupported value: "Group"`}},
		{"nothing of a role", roleRef(openmcp.RoleRef{}), []string{"spec.token.roleRefs[0].name: Required value"}},
		{"a Role in no namespace of a binding", oidc(func(o *openmcp.OIDCConfig) { o.RoleBindings[0].RoleRefs[1].Namespace = "" }),
			[]string{bindingsAt + "roleRefs[1].namespace: Required value: namespace must be set if kind is 'Role'"}},

		{"no provider", oidc(func(o *openmcp.OIDCConfig) { o.Name = "" }), []string{"spec.oidc.name: Required value"}},
		{"the provider system", oidc(func(o *openmcp.OIDCConfig) { o.Name = "system" }),
			[]string{`spec.oidc.name: Invalid value: "system": 'system' is a reserved string and may not be used as OIDC provider name`}},
		{"a bad name", oidc(func(o *openmcp.OIDCConfig) { o.Name = "A" }), []string{"spec.oidc.name: Invalid value"}},
		{"a long name", oidc(func(o *openmcp.OIDCConfig) { o.Name = strings.Repeat("a", 253) }), nil},
		{"a longer name", oidc(func(o *openmcp.OIDCConfig) { o.Name = strings.Repeat("a", 254) }), []string{"spec.oidc.name: Too long"}},
		{"no issuer", oidc(func(o *openmcp.OIDCConfig) { o.Issuer = "" }), []string{"spec.oidc.issuer: Required value"}},
		{"an issuer without a scheme", oidc(func(o *openmcp.OIDCConfig) { o.Issuer = "oidc.example.com" }), []string{"spec.oidc.issuer: Invalid value"}},
		{"an issuer with a space", oidc(func(o *openmcp.OIDCConfig) { o.Issuer = "https://ab c" }), []string{"spec.oidc.issuer: Invalid value"}},
		{"an issuer by http", oidc(func(o *openmcp.OIDCConfig) { o.Issuer = "http://oidc:8080/x" }), nil},
		{"no client", oidc(func(o *openmcp.OIDCConfig) { o.ClientID = "" }), []string{"spec.oidc.clientID: Required value"}},
		{"no bindings", oidc(func(o *openmcp.OIDCConfig) { o.RoleBindings = []openmcp.RoleBindings{} }), nil},
		{"null for bindings", oidc(func(o *openmcp.OIDCConfig) { o.RoleBindings = nil }), []string{"spec.oidc.roleBindings: Required value"}},
		{"nobody and nothing", oidc(func(o *openmcp.OIDCConfig) {
			o.RoleBindings[0] = openmcp.RoleBindings{Subjects: []rbacv1.Subject{}, RoleRefs: []openmcp.RoleRef{}}
		}), nil},
		{"null for subjects and roles", oidc(func(o *openmcp.OIDCConfig) { o.RoleBindings[0] = openmcp.RoleBindings{} }),
			[]string{bindingsAt + "roleRefs: Required value", bindingsAt + "subjects: Required value"}},
		{"a ServiceAccount", subject(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "a", Name: "b"}), nil},
		{"a ServiceAccount in no namespace", subject(rbacv1.Subject{Kind: "ServiceAccount", Name: "b"}), []string{bindingsAt + "subjects[0].namespace: Required value"}},
		{"a subject of another kind", subject(rbacv1.Subject{Kind: "Robot", Name: "b"}), []string{bindingsAt + `subjects[0].kind: Unsupported value: "Robot"`}},
		{"no subject", subject(rbacv1.Subject{}), []string{bindingsAt + "subjects[0].kind: Required value", bindingsAt + "subjects[0].name: Required value"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := validAccessRequest()
			c.change(r)
			wantErrors(t, boundstest.Created(t, scheme, r, ValidateAccessRequest), c.want...)
			wantErrors(t, boundstest.Updated(t, scheme, r, validAccessRequest(), ValidateAccessRequestUpdate), c.want...)
		})
	}
}

func TestAccessRequest_ReferencesAreImmutable(t *testing.T) {
	a, b := &openmcp.ObjectReference{Namespace: "ns", Name: "a"}, &openmcp.ObjectReference{Namespace: "ns", Name: "b"}
	for name, set := range map[string]func(*openmcp.AccessRequest, *openmcp.ObjectReference){
		"clusterRef": func(r *openmcp.AccessRequest, ref *openmcp.ObjectReference) { r.Spec.ClusterRef = ref },
		"requestRef": func(r *openmcp.AccessRequest, ref *openmcp.ObjectReference) { r.Spec.RequestRef = ref },
	} {
		for _, c := range []struct {
			from, to *openmcp.ObjectReference
			want     []string
		}{
			{nil, nil, nil}, {nil, a, nil}, {a, a.DeepCopy(), nil},
			{a, b, []string{"spec." + name + `: Invalid value: "ns/b": ` + name + " is immutable"}},
			{a, nil, []string{"spec: Invalid value: " + name + " may not be removed once set"}},
		} {
			old, changed := validAccessRequest(), validAccessRequest()
			set(old, c.from)
			set(changed, c.to)
			wantErrors(t, boundstest.Updated(t, scheme, changed, old, ValidateAccessRequestUpdate), c.want...)
		}
	}
}

func TestAccessRequest_TTL(t *testing.T) {
	creation := time.Unix(1000, 0)
	for _, c := range []struct {
		ttl, age time.Duration
		want     []string
		warning  string
	}{
		{ttl: time.Hour},
		{ttl: time.Hour, age: time.Hour - 1},
		{ttl: time.Minute},
		{ttl: time.Minute - 1, warning: "spec.ttl: the request is deleted 59.999999999s after its creation"},
		{ttl: 0, want: []string{`spec.ttl: Invalid value: "0s": must be above 0`}, warning: "spec.ttl: 0s after the creation has already passed"},
		{ttl: -time.Hour, want: []string{`spec.ttl: Invalid value: "-1h0m0s": must be above 0`}, warning: "spec.ttl: -1h0m0s after"},
		{ttl: time.Hour, age: time.Hour, warning: "spec.ttl: 1h0m0s after the creation has already passed, so the request is deleted now"},
	} {
		r := validAccessRequest()
		r.CreationTimestamp, r.Spec.TTL = metav1.NewTime(creation), &duration.Duration{Duration: c.ttl}
		wantErrors(t, boundstest.Created(t, scheme, r, ValidateAccessRequest), c.want...)
		wantErrors(t, boundstest.Updated(t, scheme, r, validAccessRequest(), ValidateAccessRequestUpdate))
		got := strings.Join(AccessRequestWarnings(r, creation.Add(c.age)), "\n")
		if !strings.HasPrefix(got, c.warning) || (got == "") != (c.warning == "") {
			t.Errorf("%s after %s: warned %q, want %q", c.ttl, c.age, got, c.warning)
		}
	}
}

func TestAccessRequest_WarnsOfClusterRole(t *testing.T) {
	r := validAccessRequest()
	r.Spec.Token.RoleRefs = []openmcp.RoleRef{{Kind: "Role", Name: "a", Namespace: "b"}, {Kind: "ClusterRole", Name: "a", Namespace: "b"}}
	r.Spec.OIDC = validOIDC()
	r.Spec.OIDC.RoleBindings[0].RoleRefs[0].Namespace = "b"
	got := AccessRequestWarnings(r, time.Unix(2000, 0))
	if len(got) != 2 || !strings.HasPrefix(got[0], "spec.token.roleRefs[1].namespace: is ignored") ||
		!strings.HasPrefix(got[1], "spec.oidc.roleBindings[0].roleRefs[0].namespace: is ignored") {
		t.Errorf("got %q", got)
	}
}
