// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// request is a request that does not test a field: its verb, path, and body.
type request struct {
	what, verb, path, contentType, body string
	parameters                          []string
}

// requestsOf returns the requests that both servers get for a kind. stored exists under the path one, and all is the path of its list.
func (b *both) requestsOf(kind compared, stored *unstructured.Unstructured, all, one string) []request {
	const plain, yaml, merge, jsonPatch, apply = "application/json", "application/yaml", string(types.MergePatchType), string(types.JSONPatchType),
		string(types.ApplyYAMLPatchType)
	// with returns the object under a different name, changed.
	with := func(change func(o *unstructured.Unstructured)) string {
		o := stored.DeepCopy()
		o.SetName("another")
		change(o)
		return string(harness.Must(json.Marshal(o.Object))(b.t))
	}
	is := func(name string, value any) string {
		return with(func(o *unstructured.Unstructured) { o.Object[name] = value })
	}
	in := func(name string, value any) string {
		return with(func(o *unstructured.Unstructured) {
			metadata := maps.Clone(o.Object["metadata"].(map[string]any))
			metadata[name] = value
			o.Object["metadata"] = metadata
		})
	}
	same := string(harness.Must(json.Marshal(stored.Object))(b.t))
	requests := []request{
		{"update without a resourceVersion", "PUT", one, plain, same, nil},
		{"update of what is not there", "PUT", all + "/another", plain, is("x", 1), nil},
		{"update under another name", "PUT", one, plain, is("x", 1), nil},
		{"unknown field, strict", "POST", all, plain, is("unknown", 1), []string{"fieldValidation=Strict"}},
		{"unknown field, ignored", "POST", all, plain, is("unknown", 1), []string{"fieldValidation=Ignore"}},
		{"unknown field of metadata, strict", "POST", all, plain, in("unknown", 1), []string{"fieldValidation=Strict"}},
		{"a field twice, strict", "POST", all, plain, strings.Replace(is("x", 1), `"x":1`, `"kind":"`+stored.GetKind()+`"`, 1), []string{"fieldValidation=Strict"}},
		{"no such validation", "POST", all, plain, same, []string{"fieldValidation=Unknown"}},
		{"a field in capitals", "POST", all, plain, strings.Replace(is("x", 1), `"spec"`, `"Spec"`, 1), nil},
		{"another kind", "POST", all, plain, is("kind", "Another"), nil},
		{"another version", "POST", all, plain, is("apiVersion", "clusters.openmcp.cloud/v2"), nil},
		{"no kind", "POST", all, plain, is("kind", ""), nil},
		{"no apiVersion", "POST", all, plain, is("apiVersion", ""), nil},
		{"what is there", "POST", all, plain, same, nil},
		{"another namespace", "POST", all, plain, in("namespace", "another"), nil},
		{"no name", "POST", all, plain, in("name", ""), nil},
		{"a name in capitals", "POST", all, plain, in("name", "A"), nil},
		{"a name with a dot", "POST", all, plain, in("name", "a.b"), nil},
		{"a long name", "POST", all, plain, in("name", strings.Repeat("a", 254)), nil},
		{"a wrong label", "POST", all, plain, in("labels", map[string]any{"a b": "c"}), nil},
		{"a label of another type", "POST", all, plain, in("labels", map[string]any{"a": 1}), nil},
		{"a finalizer without a domain", "POST", all, plain, in("finalizers", []any{"a b"}), nil},
		{"a UID", "POST", all, plain, in("uid", "a"), nil},
		{"a resourceVersion", "POST", all, plain, in("resourceVersion", "1"), nil},
		{"a time of creation", "POST", all, plain, in("creationTimestamp", "yesterday"), nil},
		{"a status", "POST", all, plain, is("status", map[string]any{"phase": "x"}), nil},
		{"a status that is none", "POST", all, plain, is("status", "x"), nil},
		{"no object", "POST", all, plain, "[]", nil},
		{"nothing", "POST", all, plain, "", nil},
		{"YAML", "POST", all, yaml, is("x", 1), nil},
		{"text", "POST", all, "text/plain", is("x", 1), nil},
		{"merge patch of what is not there", "PATCH", all + "/another", merge, `{}`, nil},
		{"merge patch that is none", "PATCH", one, merge, `[]`, nil},
		{"merge patch of the name", "PATCH", one, merge, `{"metadata":{"name":"another"}}`, nil},
		{"merge patch of the UID", "PATCH", one, merge, `{"metadata":{"uid":"another"}}`, nil},
		{"merge patch of an old version", "PATCH", one, merge, `{"metadata":{"resourceVersion":"1"}}`, nil},
		{"merge patch of the kind", "PATCH", one, merge, `{"kind":"Another"}`, nil},
		{"merge patch of the status", "PATCH", one, merge, `{"status":{"phase":"x"}}`, nil},
		{"merge patch, unknown field, strict", "PATCH", one, merge, `{"unknown":1}`, []string{"fieldValidation=Strict"}},
		{"JSON patch", "PATCH", one, jsonPatch, `[{"op":"test","path":"/kind","value":"` + stored.GetKind() + `"}]`, nil},
		{"JSON patch whose test fails", "PATCH", one, jsonPatch, `[{"op":"test","path":"/kind","value":"Another"}]`, nil},
		{"JSON patch of what is not there", "PATCH", one, jsonPatch, `[{"op":"remove","path":"/spec/unknown"}]`, nil},
		{"apply without a manager", "PATCH", one, apply, same, nil},
		{"apply that makes one", "PATCH", all + "/another", apply, in("x", nil), []string{"fieldManager=another"}},
		{"apply with an unknown field", "PATCH", one, apply, with(func(o *unstructured.Unstructured) { o.SetName(stored.GetName()); o.Object["unknown"] = "x" }), []string{"fieldManager=another", "force=true"}},
		{"apply of managed fields", "PATCH", one, apply, strings.Replace(same, `"name":`, `"managedFields":[{}],"name":`, 1), []string{"fieldManager=another"}},
		{"get of what is not there", "GET", all + "/another", plain, "", nil},
		{"list by a field that cannot be selected by", "GET", all, plain, "", []string{"fieldSelector=spec.unknown=a"}},
		{"list by a name", "GET", all, plain, "", []string{"fieldSelector=metadata.name=" + stored.GetName()}},
		{"list by a namespace", "GET", all, plain, "", []string{"fieldSelector=metadata.namespace=compared"}},
		{"list by no label", "GET", all, plain, "", []string{"labelSelector=a b"}},
		{"list of a version that is none", "GET", all, plain, "", []string{"resourceVersion=x"}},
		{"list from nowhere", "GET", all, plain, "", []string{"continue=x"}},
		{"delete of what is not there", "DELETE", all + "/another", plain, "", nil},
		{"delete of another's", "DELETE", one, plain, `{"dryRun":["All"],"preconditions":{"uid":"another"}}`, nil},
		{"delete of an old version", "DELETE", one, plain, `{"dryRun":["All"],"preconditions":{"resourceVersion":"1"}}`, nil},
		{"delete in no way", "DELETE", one, plain, `{"dryRun":["All"],"propagationPolicy":"Another"}`, nil},
		{"delete", "DELETE", one, plain, "", nil},
		{"delete of all", "DELETE", all, plain, "", nil},
		{"another subresource", "GET", one + "/another", plain, "", nil},
		{"scale", "GET", one + "/scale", plain, "", nil},
	}
	if kind.status != "" {
		requests = append(requests,
			request{"status without a resourceVersion", "PUT", one + "/status", plain, same, nil},
			request{"status of what is not there", "PATCH", all + "/another/status", merge, `{"status":{}}`, nil},
			request{"status with a spec", "PATCH", one + "/status", merge, `{"spec":{"x":1}}`, nil},
			request{"status with labels", "PATCH", one + "/status", merge, `{"metadata":{"labels":{"a":"b"}}}`, nil},
			request{"status that is posted", "POST", one + "/status", plain, same, nil},
			request{"status that is deleted", "DELETE", one + "/status", plain, "", nil})
	}
	return requests
}
