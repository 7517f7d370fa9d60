// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// clusters.openmcp.cloud as the clients and providers of openMCP use it, who know it as CustomResourceDefinitions.

// provider returns a client as providers have: a controller-runtime client without a cache.
func provider(t *testing.T) client.Client {
	t.Helper()
	return harness.Must(client.New(harness.Hub(t).AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)
}

// newProfile creates a profile that offers the given versions, or any version if none are given.
func newProfile(t *testing.T, versions ...v1alpha1.SupportedK8sVersion) string {
	t.Helper()
	p := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("profile")}, Spec: v1alpha1.ClusterProfileSpec{
		ProviderRef: v1alpha1.LocalObjectReference{Name: "kind"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: harness.Unique("config")},
		SupportedVersions: append([]v1alpha1.SupportedK8sVersion{}, versions...),
	}}
	create(t, p)
	return p.Name
}

// create creates an object that is deleted when the test ends, even if it has finalizers.
func create[T client.Object](t *testing.T, object T) T {
	t.Helper()
	if err := provider(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = provider(t).Patch(ctx, object, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)))
		_ = provider(t).Delete(ctx, object)
	})
	return object
}

func clusterRequest(namespace string) *v1alpha1.ClusterRequest {
	return &v1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: harness.Unique("request")}, Spec: v1alpha1.ClusterRequestSpec{Purpose: "mcp"},
	}
}

func accessRequest(namespace string) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: harness.Unique("access")},
		Spec:       v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{}},
	}
}

func TestAccessAPI_DiscoveryMatchesCRDs(t *testing.T) {
	list := harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).Discovery().ServerResourcesForGroupVersion(harness.OpenMCPGroup + "/v1alpha1"))(t)
	var got []string
	for _, r := range list.APIResources {
		if r.Categories != nil || (r.Verbs.String() != "[create delete deletecollection get list patch update watch]" && !strings.Contains(r.Name, "/")) {
			t.Errorf("%s: categories %v, verbs %v", r.Name, r.Categories, r.Verbs)
		}
		got = append(got, fmt.Sprint(r.Name, " ", r.SingularName, " ", r.Kind, " ", r.Namespaced, " ", r.ShortNames))
	}
	slices.Sort(got)
	if want := []string{
		"accessrequests accessrequest AccessRequest true [ar areq]", "accessrequests/status  AccessRequest true []",
		"accessrequests/token  AccessToken true []",
		"clusterprofiles clusterprofile ClusterProfile false [cprof profile]",
		"clusterrequests clusterrequest ClusterRequest true [cr creq]", "clusterrequests/status  ClusterRequest true []",
		"clusters cluster Cluster true []", "clusters/status  Cluster true []",
	}; !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range []string{"cprof", "profile", "clusters", "cluster", "creq", "cr", "areq", "ar", "clusterrequest", "accessrequest"} {
		harness.MustKubectl(t, "", "get", name, "-A")
	}
}

func TestAccessAPI_ExplainsEveryField(t *testing.T) {
	ours := 0
	for name, schema := range harness.OpenAPIModels(t, harness.OpenMCPGroup+"/v1alpha1") {
		if !strings.HasPrefix(name, "cloud.openmcp.clusters.v1alpha1.") {
			if !strings.HasPrefix(name, "io.k8s.") && !strings.HasPrefix(name, "dev.clusterhub.duration.") {
				t.Errorf("the model is named %s", name)
			}
			continue
		}
		ours++
		for field, property := range schema.Properties {
			if property.Description == "" || schema.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
	if ours < 4 {
		t.Errorf("there are %d models of ours", ours)
	}
	harness.Contains(t, strings.Join(strings.Fields(harness.MustKubectl(t, "", "explain", "ar.spec.oidc.usernamePrefix")), " "), "include the colon at its end")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "accessrequest.spec.token.permissions.rules.verbs"), "that apply to ALL the ResourceKinds")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "cluster.spec.tenancy"), "Exclusive", "Shared")
}

// applyExample applies a document of the specification after a change.
func applyExample(t *testing.T, name string, change func(map[string]any)) (string, error) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal(harness.Must(os.ReadFile("testdata/openmcp-"+name+".yaml"))(t), &object); err != nil {
		t.Fatal(err)
	}
	change(object["spec"].(map[string]any))
	return harness.Kubectl(t, string(harness.Must(yaml.Marshal(object))(t)), "apply", "-f", "-")
}

func TestAccessAPI_SpecificationExamples(t *testing.T) {
	harness.MustKubectl(t, "", "create", "namespace", "my-namespace")
	t.Cleanup(func() {
		_ = harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "namespace/my-namespace", "clusterprofile/default.myprovider.myprofile", "--wait=false").Run()
	})
	harness.ApplyFile(t, "openmcp-clusterprofile.yaml")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "profile", "default.gardener.mcpd-gcp-large", "--no-headers"), "gardener   mcpd-gcp-large")

	out, err := harness.Kubectl(t, "", "apply", "-f", "testdata/openmcp-cluster.yaml")
	if err == nil {
		t.Error("the cluster of a profile that does not exist is taken")
	}
	harness.Contains(t, out, `spec.profile: Invalid value: "default.myprovider.myprofile"`)
	profile := strings.NewReplacer("default.gardener.mcpd-gcp-large", "default.myprovider.myprofile", "version: 1.32.7", "version: 1.32.8").
		Replace(string(harness.Must(os.ReadFile("testdata/openmcp-clusterprofile.yaml"))(t)))
	harness.MustKubectl(t, profile, "apply", "-f", "-")
	harness.MustKubectl(t, "", "apply", "-f", "testdata/openmcp-cluster.yaml")
	harness.Contains(t, harness.MustKubectl(t, "", "apply", "-f", "testdata/openmcp-cluster.yaml"), "unchanged")
	lines := strings.Split(harness.MustKubectl(t, "", "get", "clusters", "-n", "my-namespace", "-o", "wide"), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME PURPOSES PHASE VERSION PROVIDER PROFILE INFO AGE" {
		t.Errorf("the columns are %s", got)
	}
	harness.Contains(t, strings.Join(strings.Fields(lines[1]), " "), `my-cluster ["my-purpose"] 1.31.11 gardener default.myprovider.myprofile foobar`)

	out, err = applyExample(t, "accessrequest", func(map[string]any) {})
	if err == nil {
		t.Error("a request for a token and for OIDC is taken")
	}
	harness.Contains(t, out, "exactly one of spec.token or spec.oidc must be set")
	for _, other := range []string{"oidc", "token"} {
		if out, err := applyExample(t, "accessrequest", func(spec map[string]any) { delete(spec, other) }); err != nil {
			t.Errorf("without %s: %s", other, out)
		}
		harness.Contains(t, harness.MustKubectl(t, "", "get", "ar", "-n", "my-namespace"), "NAME", "PHASE", "my-access")
		harness.MustKubectl(t, "", "delete", "ar", "-n", "my-namespace", "my-access")
	}
}

// TestAccessAPI_RejectionsMatchCRDs verifies that the API rejects what the CRDs reject, with the same messages.
func TestAccessAPI_RejectionsMatchCRDs(t *testing.T) {
	namespace := harness.NewNamespace(t)
	profile := newProfile(t)
	c := create(t, harness.OpenMCPCluster(namespace, profile))
	r := create(t, clusterRequest(namespace))
	a := accessRequest(namespace)
	a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: c.Name}
	create(t, a)
	harness.MustKubectl(t, "", "patch", "-n", namespace, "cr", r.Name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"observedGeneration":1,"phase":"Granted","cluster":{"name":"a","namespace":"b"}}}`)
	for _, p := range []struct{ object, patch, says string }{
		{"cluster/" + c.Name, `{"spec":{"profile":"` + newProfile(t) + `"}}`, "profile is immutable"},
		{"cluster/" + c.Name, `{"spec":{"purposes":[]}}`, "spec.purposes: Invalid value: should have at least 1 items"},
		{"cluster/" + c.Name, `{"spec":{"tenancy":"Own"}}`, `spec.tenancy: Unsupported value: "Own"`},
		{"clusterrequest/" + r.Name, `{"spec":{"purpose":"other"}}`, "spec is immutable"},
		{"clusterrequest/" + r.Name + "/status", `{"status":{"cluster":{"name":"c"}}}`, "cluster is immutable"},
		{"clusterrequest/" + r.Name + "/status", `{"status":{"cluster":null}}`, "cluster may not be removed once set"},
		{"clusterrequest/" + r.Name + "/status", `{"status":{"conditions":[{"type":"A","status":"True","reason":"a b","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "reason"},
		{"clusterrequest/" + r.Name + "/status", `{"status":null}`, ""}, // lost
		{"accessrequest/" + a.Name, `{"spec":{"clusterRef":{"name":"c"}}}`, "clusterRef is immutable"},
		{"accessrequest/" + a.Name, `{"spec":{"clusterRef":null}}`, "clusterRef may not be removed once set"},
		{"accessrequest/" + a.Name, `{"spec":{"token":null}}`, "exactly one of spec.token or spec.oidc must be set"},
		{"accessrequest/" + a.Name, `{"spec":{"token":{"permissions":[{"rules":null}]}}}`, "spec.token.permissions[0].rules: Required value"},
		{"accessrequest/" + a.Name, `{"spec":{"token":{"permissions":[{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[]}]}]}}}`, "rules[0].verbs: Required value"},
		{"accessrequest/" + a.Name, `{"spec":{"token":{"roleRefs":[{"kind":"Role","name":"a"}]}}}`, "namespace must be set if kind is 'Role'"},
		{"accessrequest/" + a.Name, `{"spec":{"ttl":"soon"}}`, "ttl"},
		{"accessrequest/" + a.Name + "/status", `{"status":{"phase":"Denied"}}`, ""},
		{"accessrequest/" + a.Name + "/status", `{"status":{"observedGeneration":-1}}`, "status.observedGeneration: Invalid value"},
		{"clusterprofile/" + profile, `{"spec":{"supportedVersions":null}}`, "spec.supportedVersions: Required value"},
		{"clusterprofile/" + profile, `{"spec":{"supportedVersions":[]}}`, ""},
		// An empty field can be set.
		{"accessrequest/" + a.Name, `{"spec":{"requestRef":{"name":"a","namespace":"b"},"ttl":"24h"}}`, ""},
		{"accessrequest/" + a.Name, `{"spec":{"requestRef":null}}`, "requestRef may not be removed once set"},
	} {
		args := []string{"patch", "-n", namespace, "--type=merge", "-p", p.patch}
		object, status := strings.CutSuffix(p.object, "/status")
		if status {
			args = append(args, "--subresource=status")
		}
		out, err := harness.Kubectl(t, "", append(args, object)...)
		if (err == nil) != (p.says == "") || !strings.Contains(out, p.says) {
			t.Errorf("%s %s: %v, %s", p.object, p.patch, err, out)
		}
	}
	for ttl, says := range map[string]string{"0s": "spec.ttl: Invalid value", "-1h": "spec.ttl: Invalid value", "10s": "Warning: spec.ttl"} {
		out, err := harness.Kubectl(t, fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: AccessRequest\nmetadata: {name: expired, namespace: %s}\nspec: {token: {}, ttl: %s}",
			harness.OpenMCPGroup, namespace, ttl), "create", "--dry-run=server", "-f", "-")
		if (err == nil) != (ttl == "10s") || !strings.Contains(out, says) {
			t.Errorf("a ttl of %s: %v, %s", ttl, err, out)
		}
	}
}

func TestAccessAPI_UnknownFields(t *testing.T) {
	namespace := harness.NewNamespace(t)
	body := fmt.Sprintf(`{"apiVersion":"%s/v1alpha1","kind":"AccessRequest","metadata":{"generateName":"a-","uid":"mine","creationTimestamp":"2020-01-01T00:00:00Z"},
		"spec":{"permissions":[],"oidc":{"name":"corp","issuer":"https://ab","clientID":"b","groupsClaim":"","roleBindings":[],"nothing":1}}}`, harness.OpenMCPGroup)
	raw := harness.RESTClient(t, harness.Hub(t).AdminConfig())
	for validation, want := range map[string]int{"Strict": http.StatusBadRequest, "Warn": http.StatusCreated, "Ignore": http.StatusCreated, "": http.StatusCreated} {
		var code int
		result := raw.Post().AbsPath("/apis", harness.OpenMCPGroup, "v1alpha1", "namespaces", namespace, "accessrequests").
			Param("fieldValidation", validation).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).StatusCode(&code)
		data, _ := result.Raw()
		if code != want {
			t.Errorf("%q: got %d, %s", validation, code, data)
			continue
		}
		if validation == "Strict" {
			harness.Contains(t, string(data), `unknown field \"spec.permissions\"`, `unknown field \"spec.oidc.nothing\"`)
			continue
		}
		if warned := len(result.Warnings()); warned != map[string]int{"Warn": 2, "": 2}[validation] {
			t.Errorf("%q: %v", validation, result.Warnings())
		}
		harness.Contains(t, string(data), `"groupsClaim":""`, `"usernameClaim":"sub"`, `"generation":1`, `"name":"a-`)
		for _, part := range []string{"permissions", "nothing", `"mine"`, "2020", `"status"`} {
			if strings.Contains(string(data), part) {
				t.Errorf("%q: %s is in %s", validation, part, data)
			}
		}
	}
}
