// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies_test evaluates parts of the policies here by themselves. test/e2e applies them to a hub.
package policies_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func policy(t *testing.T, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(name, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	first, _, _ := strings.Cut(string(data), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), policy); err != nil {
		t.Fatal(err)
	}
	return policy
}

// evaluate computes the variables of a policy as an API server does, each when it is asked for, and returns that of a name.
func evaluate(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy, name string, object, oldObject any) any {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("variables", cel.DynType),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{}
	for _, variable := range p.Spec.Variables {
		env, err := base.Env(environment.NewExpressions)
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(variable.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", variable.Name, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		if result, _, err := program.Eval(map[string]any{"object": object, "oldObject": oldObject, "variables": variables}); err == nil {
			variables[variable.Name] = result
		}
	}
	result, ok := variables[name]
	if !ok {
		t.Fatalf("%s cannot be evaluated", name)
	}
	return result.(interface{ Value() any }).Value()
}

// request is an AccessRequest as an API server shows it to policies.
func request(t *testing.T, spec string) any {
	t.Helper()
	ar := &v1alpha1.AccessRequest{}
	if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), ar); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	data, err := json.Marshal(ar)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

const (
	references = `"clusterRef":{"namespace":"clusters","name":"shared"},"requestRef":{"namespace":"eve","name":"own"}`
	tokenOfOld = `"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"},{"kind":"Role","namespace":"web","name":"reader"}],"permissions":[
  {"namespace":"web","rules":[{"apiGroups":[""],"resources":["pods","pods/log"],"verbs":["get","list"]},
    {"apiGroups":["apps"],"resources":["*"],"verbs":["*"]},
    {"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"],"verbs":["get"]}]},
  {"name":"urls","rules":[{"nonResourceURLs":["/metrics","/healthz"],"verbs":["get"]}]}]}`
	provider  = `"name":"corp","issuer":"https://oidc.example.com","clientID":"hub","usernameClaim":"sub","groupsClaim":"groups"`
	oidcRoles = `"roles":[{"name":"deployer","rules":[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["*"]}]}]`
	bindings  = `"roleBindings":[{"subjects":[{"kind":"User","name":"ann"},{"kind":"Group","name":"devs"}],"roleRefs":[
  {"kind":"ClusterRole","name":"view"},{"kind":"ClusterRole","name":"edit"}]}]`
	oidcOfOld = `"oidc":{` + provider + `,"usernamePrefix":"corp:","extraScopes":["a"],` + oidcRoles + `,` + bindings + `}`
)

func permissions(permissions string) string { return `"token":{"permissions":[` + permissions + `]}` }
func rules(rules string) string             { return permissions(`{"namespace":"web","rules":[` + rules + `]}`) }

// TestLess_OnlyDecreasesAllowed: what a request asks for may become less without a right to its Cluster, and nothing else.
func TestLess_OnlyDecreasesAllowed(t *testing.T) {
	p := policy(t, "accessrequest-clusters")
	changeOIDC := func(old, new string) string {
		changed := strings.Replace(oidcOfOld, old, new, 1)
		if changed == oidcOfOld {
			t.Fatalf("%s is not there", old)
		}
		return changed
	}
	for _, of := range []struct {
		old        string
		less, more []string
	}{
		{old: references + `,"ttl":"24h",` + tokenOfOld, less: []string{
			references + `,"ttl":"24h",` + tokenOfOld, references + `,"ttl":"1h30m",` + tokenOfOld, references + `,"ttl":"-1s",` + tokenOfOld,
			references + `,"ttl":"24h","token":{}`,
			references + `,"ttl":"1h","token":{"roleRefs":[{"kind":"Role","namespace":"web","name":"reader"}]}`,
			references + `,"ttl":"24h",` + rules(``),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":["apps"],"resources":["deployments","deployments/scale"],"verbs":["get","patch"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":["apps"],"resources":["*"],"resourceNames":["x"],"verbs":["*"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["secrets"],"resourceNames":["b"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + permissions(`{"name":"urls","rules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]}`),
		}, more: []string{
			references + `,` + tokenOfOld, references + `,"ttl":"24h1s",` + tokenOfOld,
			references + `,"ttl":"24h",` + oidcOfOld,
			references + `,"ttl":"24h","token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}`,
			references + `,"ttl":"24h","token":{"roleRefs":[{"kind":"ClusterRole","name":"reader"}]}`,
			references + `,"ttl":"24h","token":{"roleRefs":[{"kind":"Role","namespace":"kube-system","name":"reader"}]}`,
			strings.Replace(references, "shared", "other", 1) + `,"ttl":"24h",` + tokenOfOld,
			strings.Replace(references, "own", "other", 1) + `,"ttl":"24h",` + tokenOfOld,
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["pods"],"verbs":["get","delete"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":["*"],"resources":["pods"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":["","apps"],"resources":["deployments"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["pods/exec"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["secrets"],"resourceNames":[],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + rules(`{"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","c"],"verbs":["get"]}`),
			references + `,"ttl":"24h",` + permissions(`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
			references + `,"ttl":"24h",` + permissions(`{"namespace":"web2","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
			references + `,"ttl":"24h",` + permissions(`{"name":"urls","rules":[{"nonResourceURLs":["/metrics/a"],"verbs":["get"]}]}`),
			references + `,"ttl":"24h",` + permissions(`{"name":"cluster-admin","namespace":"web","rules":[]}`),
		}},
		{old: references + "," + tokenOfOld, less: []string{references + `,"ttl":"1000h",` + tokenOfOld}},
		{old: `"requestRef":{"namespace":"eve","name":"own"},"token":{}`, more: []string{references + `,"token":{}`}},
		{old: `"clusterRef":{"namespace":"clusters","name":"shared"},"token":{}`, more: []string{references + `,"token":{}`}},
		{old: references + "," + oidcOfOld, less: []string{
			references + "," + oidcOfOld, references + `,"ttl":"1h",` + oidcOfOld,
			references + "," + changeOIDC(bindings, `"roleBindings":[]`),
			references + "," + changeOIDC(`{"kind":"User","name":"ann"},`, ``),
			references + "," + changeOIDC(`,{"kind":"ClusterRole","name":"edit"}`, ``),
		}, more: []string{
			references + "," + tokenOfOld, references + `,"token":{}`,
			references + "," + changeOIDC(`"name":"corp"`, `"name":"evil"`), references + "," + changeOIDC(`oidc.example`, `evil.example`),
			references + "," + changeOIDC(`"hub"`, `"mine"`), references + "," + changeOIDC(`"corp:"`, `""`),
			references + "," + changeOIDC(`"sub"`, `"email"`), references + "," + changeOIDC(`"groups"`, `"roles"`),
			references + "," + changeOIDC(`["a"]`, `["a","b"]`), references + "," + changeOIDC(`"clientID"`, `"groupsPrefix":"","clientID"`),
			references + "," + changeOIDC(`"ann"`, `"eve"`), references + "," + changeOIDC(`"edit"`, `"admin"`),
			references + "," + changeOIDC(oidcRoles, `"roles":[]`), references + "," + changeOIDC(`"deployments"`, `"pods"`),
		}},
	} {
		for want, specs := range map[bool][]string{true: of.less, false: of.more} {
			for _, spec := range specs {
				if got := evaluate(t, p, "less", request(t, "{"+spec+"}"), request(t, "{"+of.old+"}")); got != want {
					t.Errorf("from %s\nto %s: less is %v, want %t", of.old, spec, got, want)
				}
			}
		}
	}
	if evaluate(t, p, "less", request(t, `{`+references+`,"token":{}}`), nil) != false {
		t.Error("what is new is less than nothing")
	}
}

// TestLess_KnowsAllFields: a field that the policy does not know would be free to change.
func TestLess_KnowsAllFields(t *testing.T) {
	var text strings.Builder
	for _, variable := range policy(t, "accessrequest-clusters").Spec.Variables {
		text.WriteString(variable.Expression)
	}
	// Whole values are compared of these.
	for _, of := range []reflect.Type{
		reflect.TypeFor[v1alpha1.AccessRequestSpec](), reflect.TypeFor[v1alpha1.TokenConfig](), reflect.TypeFor[v1alpha1.PermissionsRequest](),
		reflect.TypeFor[rbacv1.PolicyRule](), reflect.TypeFor[v1alpha1.OIDCConfig](), reflect.TypeFor[v1alpha1.OIDCProviderConfig](),
		reflect.TypeFor[v1alpha1.RoleBindings](),
	} {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !regexp.MustCompile(`\.\??`+name+`\b`).MatchString(text.String()) {
				t.Errorf("the policy says nothing of %s of %s", name, of)
			}
		}
	}
}
