// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// compared is a kind of both servers: an object that both accept, and additional values of its fields as path=values, beside the values that every
// field is tried with. A number in a path is an index of a list.
type compared struct {
	resource, object string
	fields           []string
	status           string
	statusFields     []string
}

const (
	aCondition = `{type: A, status: "True", reason: B, message: c, observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z"}`
	aRule      = `{apiGroups: [""], resources: [pods], verbs: [get], resourceNames: [a]}`
)

var statusOfAll = []string{
	"observedGeneration", "phase", "conditions", "conditions.0", "conditions.0.type", "conditions.0.status", "conditions.0.reason",
	"conditions.0.message", "conditions.0.observedGeneration", "conditions.0.lastTransitionTime",
}

var comparedKinds = []compared{{
	resource: "clusterprofiles",
	object: `{kind: ClusterProfile, metadata: {name: compared}, spec: {
		providerRef: {name: kind}, providerConfigRef: {name: small}, supportedVersions: [{version: 1.33.3, deprecated: true}]}}`,
	fields: []string{
		"spec", "spec.providerRef", "spec.providerRef.name", "spec.providerConfigRef", "spec.providerConfigRef.name", "spec.supportedVersions",
		"spec.supportedVersions.0", "spec.supportedVersions.0.version", "spec.supportedVersions.0.deprecated",
	},
}, {
	resource: "clusters",
	object: `{kind: Cluster, metadata: {name: compared, namespace: compared}, spec: {
		profile: compared, tenancy: Shared, purposes: [mcp], kubernetes: {version: 1.33.3}, clusterConfigs: [{name: a}]}}`,
	fields: []string{
		"spec", "spec.profile", "spec.tenancy=Exclusive", "spec.purposes", "spec.purposes.0", "spec.kubernetes", "spec.kubernetes.version",
		"spec.clusterConfigs", "spec.clusterConfigs.0", "spec.clusterConfigs.0.name",
	},
	status: `{observedGeneration: 1, phase: Ready, conditions: [` + aCondition + `], apiServer: https://a, endpoints: [{name: a, url: https://a}],
		providerStatus: {a: {b: 1}}}`,
	statusFields: append([]string{
		"apiServer", "endpoints", "endpoints.0", "endpoints.0.name", "endpoints.0.url", "providerStatus", "providerStatus.a",
	}, statusOfAll...),
}, {
	resource: "clusterrequests",
	object:   `{kind: ClusterRequest, metadata: {name: compared, namespace: compared}, spec: {purpose: mcp, waitForClusterDeletion: true}}`,
	fields:   []string{"spec", "spec.purpose", "spec.waitForClusterDeletion"},
	status:   `{observedGeneration: 1, phase: Pending, conditions: [` + aCondition + `], cluster: {name: a, namespace: b}}`,
	statusFields: append([]string{
		"phase=Granted", "cluster", "cluster.name", "cluster.namespace",
	}, statusOfAll...),
}, {
	resource: "accessrequests",
	object: `{kind: AccessRequest, metadata: {name: compared, namespace: compared}, spec: {
		clusterRef: {name: a, namespace: b}, requestRef: {name: c, namespace: d}, ttl: 24h0m0s, token: {
			permissions: [{name: a, namespace: b, disableAutomaticNamespaceCreation: true, rules: [` + aRule + `]}],
			roleRefs: [{kind: Role, name: a, namespace: b}]}}}`,
	fields: []string{
		"spec", "spec.clusterRef", "spec.clusterRef.name", "spec.clusterRef.namespace", "spec.requestRef", "spec.requestRef.name",
		"spec.requestRef.namespace", "spec.ttl=24h,1h30m0s,0s,-1h0m0s,soon", "spec.token", "spec.token.permissions", "spec.token.permissions.0",
		"spec.token.permissions.0.name=a:b,a/b", "spec.token.permissions.0.namespace=a.b,A", "spec.token.permissions.0.disableAutomaticNamespaceCreation",
		"spec.token.permissions.0.rules", "spec.token.permissions.0.rules.0", "spec.token.permissions.0.rules.0.apiGroups",
		"spec.token.permissions.0.rules.0.apiGroups.0", "spec.token.permissions.0.rules.0.resources",
		"spec.token.permissions.0.rules.0.resourceNames", "spec.token.permissions.0.rules.0.nonResourceURLs",
		"spec.token.permissions.0.rules.0.verbs", "spec.token.permissions.0.rules.0.verbs.0", "spec.token.roleRefs", "spec.token.roleRefs.0",
		"spec.token.roleRefs.0.kind=ClusterRole", "spec.token.roleRefs.0.name=a:b,a/b", "spec.token.roleRefs.0.namespace=a.b,A", "spec.oidc",
	},
	status:       `{observedGeneration: 1, phase: Pending, conditions: [` + aCondition + `], secretRef: {name: a}}`,
	statusFields: append([]string{"phase=Denied", "secretRef", "secretRef.name"}, statusOfAll...),
}, {
	resource: "accessrequests",
	object: `{kind: AccessRequest, metadata: {name: compared-oidc, namespace: compared}, spec: {oidc: {
		name: corp, issuer: https://a.example, clientID: hub, usernamePrefix: "a:", groupsPrefix: "b:", usernameClaim: c, groupsClaim: d,
		extraScopes: [e], roles: [{name: a, rules: [` + aRule + `]}],
		roleBindings: [{subjects: [{kind: User, name: a}], roleRefs: [{kind: ClusterRole, name: view}]}]}}}`,
	fields: []string{
		"spec.oidc", "spec.oidc.name=system,a.b,a_b,A", "spec.oidc.issuer=http://a,ftp://a,https://a b", "spec.oidc.clientID",
		"spec.oidc.usernamePrefix", "spec.oidc.groupsPrefix", "spec.oidc.usernameClaim", "spec.oidc.groupsClaim", "spec.oidc.extraScopes",
		"spec.oidc.extraScopes.0", "spec.oidc.roles", "spec.oidc.roles.0", "spec.oidc.roles.0.rules", "spec.oidc.roles.0.name",
		"spec.oidc.roles.0.namespace=a,a.b", "spec.oidc.roles.0.disableAutomaticNamespaceCreation", "spec.oidc.roles.0.rules.0",
		"spec.oidc.roles.0.rules.0.verbs", "spec.oidc.roles.0.rules.0.apiGroups", "spec.oidc.roles.0.rules.0.resources", "spec.oidc.unknown",
		"spec.oidc.roleBindings", "spec.oidc.roleBindings.0", "spec.oidc.roleBindings.0.subjects", "spec.oidc.roleBindings.0.subjects.0",
		"spec.oidc.roleBindings.0.subjects.0.kind=Group,ServiceAccount", "spec.oidc.roleBindings.0.subjects.0.name",
		"spec.oidc.roleBindings.0.subjects.0.namespace", "spec.oidc.roleBindings.0.subjects.0.apiGroup", "spec.oidc.roleBindings.0.roleRefs",
		"spec.oidc.roleBindings.0.roleRefs.0", "spec.oidc.roleBindings.0.roleRefs.0.kind=Role", "spec.oidc.roleBindings.0.roleRefs.0.name=a:b,a/b",
		"spec.oidc.roleBindings.0.roleRefs.0.namespace=a,a.b", "spec.token",
	},
}}

// gone removes a field, and twice duplicates the items of a list.
type gone struct{}
type twice struct{}

// valuesOf returns the values that a field is tried with.
func valuesOf(own string) []any {
	values := []any{gone{}, twice{}, nil, "", "x", strings.Repeat("x", 254), 0, -1, true, false, []any{}, []any{nil}, []any{""}, map[string]any{},
		map[string]any{"unknown": 1}}
	for _, value := range strings.Split(own, ",") {
		if value != "" {
			values = append(values, value)
		}
	}
	return values
}

// with returns an object with a different value at a path, or false if nothing would change.
func with(object any, path []string, value any) (any, bool) {
	if len(path) == 0 {
		list, isList := object.([]any)
		if _, ok := value.(twice); ok {
			return append(slices.Clone(list), list...), isList && len(list) > 0
		}
		return value, true
	}
	switch o := object.(type) {
	case map[string]any:
		o = maps.Clone(o)
		if _, ok := value.(gone); ok && len(path) == 1 {
			_, there := o[path[0]]
			delete(o, path[0])
			return o, there
		}
		changed, ok := with(o[path[0]], path[1:], value)
		o[path[0]] = changed
		return o, ok
	case []any:
		at, err := strconv.Atoi(path[0])
		if _, ok := value.(gone); err != nil || at >= len(o) || ok && len(path) == 1 {
			return o, false
		}
		o = slices.Clone(o)
		changed, ok := with(o[at], path[1:], value)
		o[at] = changed
		return o, ok
	}
	return object, false
}

// both has the two servers that get the same requests.
type both struct {
	t          *testing.T
	crds, ours rest.Interface
	// seen counts the known differences by their rows.
	seen     map[string]int
	requests int
}

// taken is the prefix of the answer of a server that accepts a request.
const taken = "taken "

// answerOf returns the response of a server to a request: the code, and the object that it would store.
func answerOf(t *testing.T, server rest.Interface, verb, path, contentType, body string, parameters ...string) string {
	request := server.Verb(verb).AbsPath("/apis/clusters.openmcp.cloud/v1alpha1/"+path).SetHeader("Content-Type", contentType).
		Param("dryRun", "All").Body([]byte(body))
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		request.Param(name, value)
	}
	var code int
	data, _ := request.Do(t.Context()).StatusCode(&code).Raw()
	if code >= 300 {
		return strconv.Itoa(code)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatalf("%s %s %s: %v, %s", verb, path, body, err, data)
	}
	stored := harness.Must(json.Marshal(map[string]any{"spec": object["spec"], "status": object["status"]}))(t)
	return taken + string(stored)
}

// differ sends a request to both servers, and reports whether their responses differ.
func (b *both) differ(d *twoAnswers, verb, path, contentType, body string, parameters ...string) bool {
	b.t.Helper()
	b.requests++
	d.crds = answerOf(b.t, b.crds, verb, path, contentType, body, parameters...)
	d.ours = answerOf(b.t, b.ours, verb, path, contentType, body, parameters...)
	return d.crds != d.ours
}

func TestAccessAPI_MatchesCRDs(t *testing.T) {
	plain := harness.LendCluster(t)
	quiet := func(config *rest.Config) rest.Interface {
		config.WarningHandler = rest.NoWarnings{}
		return harness.RESTClient(t, config)
	}
	b := &both{t: t, crds: quiet(plain.AdminConfig()), ours: quiet(harness.Hub(t).AdminConfig())}
	apply := func(h *localhub.Instance, manifests string) {
		t.Helper()
		cmd := h.Kubectl(t.Context(), "apply", "-f", "-")
		cmd.Stdin = strings.NewReader(manifests)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	apply(plain, string(harness.Must(os.ReadFile("testdata/openmcp-crds.yaml"))(t)))
	for _, kind := range comparedKinds {
		if out, err := plain.Kubectl(t.Context(), "wait", "crd/"+kind.resource+"."+harness.OpenMCPGroup, "--for=condition=Established", "--timeout="+harness.Timeout.String()).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, h := range []*localhub.Instance{plain, harness.Hub(t)} {
		apply(h, "{apiVersion: v1, kind: Namespace, metadata: {name: compared}}")
	}
	t.Cleanup(func() { removeCompared(t) })
	documented := string(harness.Must(os.ReadFile(filepath.Join(harness.Root, "docs", "access.md")))(t))
	b.seen = map[string]int{}
	for _, kind := range comparedKinds {
		b.compare(kind, apply, plain)
	}
	t.Logf("%d requests, of which these were answered in different ways: %v", b.requests, b.seen)
	for _, known := range knownDifferences {
		if !strings.Contains(documented, "\n| "+known.row) {
			t.Errorf("docs/access.md does not say of %q that it is answered in different ways", known.row)
		}
		if b.seen[known.row] == 0 {
			t.Errorf("docs/access.md says of %q that it is answered in different ways, and it is not", known.row)
		}
	}
}

func (b *both) compare(kind compared, apply func(*localhub.Instance, string), plain *localhub.Instance) {
	t := b.t
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(kind.object), &object); err != nil {
		t.Fatal(err)
	}
	object["apiVersion"] = harness.OpenMCPGroup + "/v1alpha1"
	for _, h := range []*localhub.Instance{plain, harness.Hub(t)} {
		apply(h, string(harness.Must(json.Marshal(object))(t)))
	}
	stored := &unstructured.Unstructured{Object: object}
	all, one := kind.resource, kind.resource+"/"+stored.GetName()
	if namespace := stored.GetNamespace(); namespace != "" {
		all, one = "namespaces/"+namespace+"/"+all, "namespaces/"+namespace+"/"+one
	}
	const merge = string(types.MergePatchType)
	if kind.status != "" {
		status := harness.Must(yaml.YAMLToJSON([]byte(`{status: ` + kind.status + `}`)))(t)
		for _, server := range []rest.Interface{b.crds, b.ours} {
			if err := server.Patch(types.MergePatchType).AbsPath("/apis/clusters.openmcp.cloud/v1alpha1/", one, "status").Body(status).Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	try := func(part string, whole any, fields []string, send func(d *twoAnswers, body string) (differ bool)) {
		for _, field := range fields {
			path, own, _ := strings.Cut(field, "=")
			for _, value := range valuesOf(own) {
				changed, ok := with(whole, strings.Split(path, "."), value)
				if !ok {
					continue
				}
				body, described := harness.Must(json.Marshal(changed))(t), string(harness.Must(json.Marshal(value))(t))
				switch value.(type) {
				case gone:
					described = "absent"
				case twice:
					described = "twice"
				}
				d := &twoAnswers{kind: kind.resource, part: part, field: path, value: fmt.Sprintf("%.20s", described)}
				if send(d, string(body)) {
					b.judge(d)
				}
			}
		}
	}
	for _, r := range b.requestsOf(kind, stored, all, one) {
		if d := (&twoAnswers{kind: kind.resource, part: "request", field: r.what}); b.differ(d, r.verb, r.path, r.contentType, r.body, r.parameters...) {
			b.judge(d)
		}
	}
	fresh := stored.DeepCopy()
	fresh.SetName(stored.GetName() + "-new")
	try("create", fresh.Object, kind.fields, func(d *twoAnswers, body string) bool {
		return b.differ(d, "POST", all, "application/json", body)
	})
	try("patch", map[string]any{"spec": object["spec"]}, kind.fields, func(d *twoAnswers, body string) bool {
		if strings.HasPrefix(d.value, `"xxx`) || !strings.ContainsAny(d.value[:1], `ant"`) && d.value != "[]" && d.value != "{}" {
			return false // decoded as in a create
		}
		return b.differ(d, "PATCH", one, merge, body)
	})
	try("apply", object, kind.fields, func(d *twoAnswers, body string) bool {
		return b.differ(d, "PATCH", one, string(types.ApplyYAMLPatchType), body, "fieldManager=another", "force=true")
	})
	if kind.status == "" {
		return
	}
	status := map[string]any{}
	if err := yaml.Unmarshal([]byte(kind.status), &status); err != nil {
		t.Fatal(err)
	}
	try("status", status, kind.statusFields, func(d *twoAnswers, body string) bool {
		return b.differ(d, "PATCH", one+"/status", merge, `{"status":`+body+`}`)
	})
}

// judge fails the test unless a difference is known.
func (b *both) judge(d *twoAnswers) {
	for _, known := range knownDifferences {
		if known.of(d) {
			b.seen[known.row]++
			return
		}
	}
	b.t.Errorf("%s: %s with %s=%s is answered in different ways, and docs/access.md does not say so\n  CustomResourceDefinition: %.1000s\n"+
		"                      here: %.1000s", d.kind, d.part, d.field, d.value, d.crds, d.ours)
}

func removeCompared(t *testing.T) {
	for _, args := range [][]string{
		{"delete", "namespace", "compared", "--wait=false"}, {"delete", "clusterprofile", "compared", "--wait=false"},
	} {
		if out, err := harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), args...).CombinedOutput(); err != nil {
			t.Logf("%v: %s", err, out)
		}
	}
}
