// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// TestUnknownFields_ArePreserved: an object that Open Cluster Management's programs have made, or a later version of them, keeps all of it,
// also where this version does not look.
func TestUnknownFields_ArePreserved(t *testing.T) {
	client := server(t)
	const spec = `{later: {a: [1, {b: c}]}, deployOption: {mode: Hosted, later: a}, registrationConfiguration: {later: a,
		registrationDriver: {later: a}, bootstrapKubeConfigs: {later: a}, featureGates: [{feature: A, later: a}]}, workConfiguration: {later: a},
		nodePlacement: {later: a}, externalServerURLs: [{url: "https://c", later: a}]}`
	const status = `{"later":{"a":1},"relatedResources":[{"group":"","version":"v1","resource":"secrets","name":"s","later":"a"}]}`
	want := object(t, klusterlets, "later", spec).Object["spec"]
	applied(t, client, klusterlets, "later", spec)
	k := change{client: client, resource: klusterlets, name: "later"}
	if err := k.patch(t, types.MergePatchType, map[string]any{"status": json.RawMessage(status)}, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for how, write := range writes {
		k.spec, k.path, k.value = spec, []string{"spec", "priorityClassName"}, strings.ToLower(strings.ReplaceAll(how, " ", "-"))
		if err := write(t, k); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		o, err := of(client, klusterlets).Get(t.Context(), "later", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if missing := missing(want, o.Object["spec"], "spec"); len(missing) > 0 {
			t.Errorf("after %s there is no %s", how, strings.Join(missing, ", "))
		}
		if missing := missing(worktest.Parse(status).Object, o.Object["status"], "status"); len(missing) > 0 {
			t.Errorf("after %s there is no %s", how, strings.Join(missing, ", "))
		}
	}
}

// missing are the fields that a value has and another has not, or has otherwise.
func missing(want, got any, path string) (paths []string) {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for key, value := range want {
			paths = append(paths, missing(value, got[key], path+"."+key)...)
		}
	case []any:
		got, _ := got.([]any)
		for i, value := range want {
			if i >= len(got) {
				return append(paths, fmt.Sprintf("%s[%d]", path, i))
			}
			paths = append(paths, missing(value, got[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return []string{path}
		}
	}
	return paths
}

// TestUnknownFields_ArePreservedInEveryStruct: one that is forgotten would lose fields of later versions. What is ours alone is held to its
// schema, so that a mistake in it is found, and so are the types of Kubernetes.
func TestUnknownFields_ArePreservedInEveryStruct(t *testing.T) {
	strict := []string{"clusterhub", "conditions", "tolerations", "resourceRequirements", "metadata"}
	for resource := range kinds {
		versions, _, err := unstructured.NestedSlice(crd(t, resource).Object, "spec", "versions")
		if err != nil || len(versions) != 1 {
			t.Fatalf("%s: %d versions (%v)", resource, len(versions), err)
		}
		root, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties")
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		var look func(schema map[string]any, path string)
		look = func(schema map[string]any, path string) {
			if items, ok := schema["items"].(map[string]any); ok {
				look(items, path+"[]")
			}
			properties, ok := schema["properties"].(map[string]any)
			if !ok {
				return
			}
			seen++
			if schema["x-kubernetes-preserve-unknown-fields"] != true {
				t.Errorf("%s: %s does not keep unknown fields", resource, path)
			}
			for name, property := range properties {
				if !slices.Contains(strict, name) {
					look(property.(map[string]any), path+"."+name)
				}
			}
		}
		for _, name := range []string{"spec", "status"} {
			look(root[name].(map[string]any), name)
		}
		if seen < 10 {
			t.Errorf("%s: only %d structs were looked at", resource, seen)
		}
	}
}

// TestOurFields_AreStrict verifies that unknown fields in them are rejected, or dropped if the client ignores field validation.
func TestOurFields_AreStrict(t *testing.T) {
	client := server(t)
	o := object(t, clusterManagers, "strict", `{clusterhub: {etcdd: {type: External}, etcd: {kind: External}}}`)
	_, err := of(client, clusterManagers).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	for _, field := range []string{`unknown field "spec.clusterhub.etcdd"`, `unknown field "spec.clusterhub.etcd.kind"`} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want %s", err, field)
		}
	}
	applied(t, client, clusterManagers, "strict", `{clusterhub: {etcd: {}}}`)
	made, err := of(client, clusterManagers).Get(t.Context(), "strict", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := text(made.Object["spec"].(map[string]any)["clusterhub"]); got != `{"etcd":{"type":"Embedded"}}` {
		t.Errorf("clusterhub is %s", got)
	}
}

// TestUpstreamObjects_AreAccepted: what clusteradm, the charts and Go programs of Open Cluster Management write, with the nulls and the
// empty fields that come of templates and of types without omitempty.
func TestUpstreamObjects_AreAccepted(t *testing.T) {
	client := server(t)
	const (
		images = `registrationImagePullSpec: "example/registration:latest", workImagePullSpec: "example/work:latest"`
		hub    = images + `, placementImagePullSpec: "example/placement:latest", addOnManagerImagePullSpec: "example/addon-manager:latest"`
	)
	for name, c := range map[string]struct{ resource, spec string }{
		"join":        {klusterlets, `{deployOption: {mode: Default}, ` + images + `, clusterName: cluster1, namespace: open-cluster-management-agent, externalServerURLs: null, registrationConfiguration: {featureGates: null}, workConfiguration: {featureGates: null}}`},
		"join-hosted": {klusterlets, `{deployOption: {mode: Hosted}, ` + images + `, clusterName: cluster1, namespace: open-cluster-management-klusterlet-hosted-abc123, externalServerURLs: [{url: "https://c:6443"}], registrationConfiguration: {featureGates: [{feature: AddonManagement, mode: Enable}]}}`},
		"chart":       {klusterlets, `{deployOption: {mode: Singleton}, imagePullSpec: "example/registration-operator:latest", ` + images + `, clusterName: null, namespace: open-cluster-management-agent, resourceRequirement: {type: Default}, priorityClassName: klusterlet-critical}`},
		"typed":       {klusterlets, `{nodePlacement: {}, deployOption: {mode: ""}, registrationConfiguration: {bootstrapKubeConfigs: {}, registrationDriver: {}}}`},
		"init":        {clusterManagers, `{` + hub + `, deployOption: {mode: Default}, registrationConfiguration: {featureGates: [{feature: DefaultClusterSet, mode: Enable}], autoApproveUsers: ["system:serviceaccount:open-cluster-management:cluster-bootstrap"], registrationDrivers: [{authType: csr}]}, workConfiguration: {featureGates: [{feature: ManifestWorkReplicaSet, mode: Enable}]}, addOnManagerConfiguration: {featureGates: null}}`},
		"hosted":      {clusterManagers, `{` + hub + `, deployOption: {mode: Hosted, hosted: {registrationWebhookConfiguration: {address: management-control-plane, port: 30443}, workWebhookConfiguration: {address: management-control-plane, port: 31443}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, c.resource, name, c.spec)
			o.Object["metadata"].(map[string]any)["creationTimestamp"] = nil
			o.Object["status"] = map[string]any{"conditions": nil}
			made, err := of(client, c.resource).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			made.Object["status"] = map[string]any{"conditions": nil, "observedGeneration": int64(1)}
			if _, err := of(client, c.resource).UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Errorf("its status: %v", err)
			}
			if err := of(client, c.resource).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDefaults verifies the defaults of an object.
func TestDefaults(t *testing.T) {
	client := server(t)
	made := applied(t, client, klusterlets, "defaults", `{registrationConfiguration: {}, workConfiguration: {}, clusterhub: {works: {}}}`)
	var k operatorv1.Klusterlet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &k); err != nil {
		t.Fatal(err)
	}
	if r, w := k.Spec.RegistrationConfiguration, k.Spec.WorkConfiguration; k.Spec.DeployOption.Mode != operatorv1.InstallModeDefault ||
		r.KubeAPIQPS != 50 || r.KubeAPIBurst != 100 || w.HubKubeAPIQPS != 50 || w.HubKubeAPIBurst != 100 || k.Spec.Clusterhub.Works.Role != "admin" {
		t.Errorf("a Klusterlet has %s", text(k.Spec))
	}
	made = applied(t, client, clusterManagers, "defaults", "")
	if got := text(made.Object["spec"]); got != `{"clusterhub":{"etcd":{"type":"Embedded"}},"deployOption":{"mode":"Default"},"workConfiguration":{"workDriver":"kube"}}` {
		t.Errorf("a ClusterManager has %s", got)
	}
	made = applied(t, client, clusterManagers, "addressed", `{deployOption: {mode: Detached}, clusterhub: {apiServer: {address: {host: a}}, etcd: {type: External, external: {servers: ["https://e"]}}}}`)
	var c operatorv1.ClusterManager
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &c); err != nil {
		t.Fatal(err)
	}
	if c.Spec.Clusterhub.APIServer.Address.Port != 443 || c.Spec.Clusterhub.Etcd.External.SecretName != "hub-apiserver-etcd" {
		t.Errorf("a detached ClusterManager has %s", text(c.Spec))
	}
}

func tableOf(t *testing.T, client *http.Client, url string) (table metav1.Table) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%d rows (%v)", len(table.Rows), err)
	}
	return table
}

// columnsOf are those of the one row, "NAME=VALUE": what is always shown, and what is shown by -o wide. When the object was made does not
// count.
func columnsOf(t *testing.T, table metav1.Table) (always, wide string) {
	t.Helper()
	var columns [2][]string
	for i, column := range table.ColumnDefinitions {
		if column.Description == "" {
			t.Errorf("the column %s has no description", column.Name)
		}
		if column.Name != "Age" {
			columns[min(column.Priority, 1)] = append(columns[min(column.Priority, 1)], fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i]))
		}
	}
	return strings.Join(columns[0], ", "), strings.Join(columns[1], ", ")
}

// TestComponents_MatchHubComponents: what a ClusterManager can name is there, and what is there can be named. That of bootstrap tokens is a
// part of every hub.
func TestComponents_MatchHubComponents(t *testing.T) {
	versions, _, err := unstructured.NestedSlice(crd(t, clusterManagers).Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Fields("schema openAPIV3Schema properties spec properties clusterhub properties components items enum")
	named, _, err := unstructured.NestedStringSlice(versions[0].(map[string]any), path...)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(append(deploy.Components(), "cluster-provider"), func(name string) bool { return name == "bootstrap" })
	slices.Sort(want)
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("components are %v, want %v", named, want)
	}
}
