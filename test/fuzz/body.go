// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// names returns the fields of an object, in order.
func names(m *model) []string { return slices.Sorted(maps.Keys(m.Properties)) }

// fill creates the body of a request, and describes it.
func (g *Generator) fill(r *rand.Rand, o operation, sample *unstructured.Unstructured, q *Request) {
	switch o.method {
	case "GET":
		if chance(r, 20) {
			q.Body = text(r)
		}
		return
	case "DELETE":
		q.Body = encode(deleteOptions(r, o))
	case "PATCH":
		q.ContentType = string(pick(r, types.ApplyYAMLPatchType, types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType))
		q.Body = g.patch(r, o, sample, q.ContentType)
	default:
		q.Body = encode(o.malformed(r, sample.Object))
		if chance(r, 5) {
			q.ContentType = "application/yaml"
		}
	}
	if strings.Contains(q.ContentType, "yaml") && chance(r, 6) {
		q.Body = yaml(r, q.Body)
	}
	if chance(r, 8) {
		q.Body = damaged(r, q.Body)
	}
	if chance(r, 12) {
		q.ContentType = pick(r, "", "x", "application/json; charset=x", "application/json;", "text/plain", "application/vnd.kubernetes.protobuf", "application/cbor",
			"application/cbor-seq", "application/apply-patch+cbor", "application/apply-patch+json", "application/merge-patch+json;a", "multipart/form-data")
		switch {
		case strings.Contains(q.ContentType, "cbor"):
			q.Body = "\xd9\xd9\xf7" + pick(r, "\xa1\x61a\x01", "\xbf", "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "\xa0", strings.Repeat("\x81", 5000))
		case strings.Contains(q.ContentType, "protobuf"):
			q.Body = "k8s\x00" + pick(r, "", "\x0a\xff\xff\xff\xff\x0f", "\x0a\x02v1\x12\x01a", strings.Repeat("\x0a", 100))
		}
	}
}

// encode writes a value as JSON. Invalid UTF-8 in it stays unchanged.
func encode(value any) string {
	var b strings.Builder
	write(&b, value)
	return b.String()
}

func write(b *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, key)
			b.WriteByte(':')
			write(b, v[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, v[i])
		}
		b.WriteByte(']')
	case json.RawMessage:
		b.Write(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			fmt.Fprintf(b, "%q", err)
		}
		b.Write(data)
	}
}

// malformed returns an object with one to three fields that are wrong.
func (o operation) malformed(r *rand.Rand, object map[string]any) any {
	m := o.document.resolve(o.model)
	if _, ok := object["status"]; !ok && m.Properties["status"] != nil && (strings.HasSuffix(o.path, "/status") || chance(r, 6)) {
		object["status"] = o.document.plausible(r, m.Properties["status"], 6)
	}
	for range 1 + r.IntN(3) {
		o.spoil(r, m, object)
	}
	return object
}

// spoil makes one field wrong, at any depth.
func (o operation) spoil(r *rand.Rand, m *model, object map[string]any) {
	if chance(r, 4) {
		metadata(r, object)
		return
	}
	for {
		fields := names(m)
		if len(fields) == 0 {
			key := pick(r, "a", "", "a/b", text(r))
			object[key] = wrong(r, &model{})
			return
		}
		name := pick(r, fields...)
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			if !chance(r, 4) {
				name = pick(r, fields...)
			}
		}
		field := o.document.resolve(m.Properties[name])
		inside, ok := object[name].(map[string]any)
		switch {
		case ok && field.Type != "array" && !chance(r, 4):
			m, object = field, inside
			continue
		case field.Type == "array" && !chance(r, 4):
			item := o.document.resolve(field.Items)
			entry, ok := o.document.plausible(r, item, 4).(map[string]any)
			if list, _ := object[name].([]any); len(list) > 0 && chance(r, 2) {
				entry, ok = list[r.IntN(len(list))].(map[string]any)
				if ok {
					m, object = item, entry
					continue
				}
			}
			if !ok {
				object[name] = []any{wrong(r, item)}
				return
			}
			object[name] = []any{entry}
			m, object = item, entry
			continue
		case field.Type == "object" || len(field.Properties) > 0:
			if made, ok := o.document.plausible(r, field, 4).(map[string]any); ok && !chance(r, 3) {
				object[name] = made
				m, object = field, made
				continue
			}
		}
		object[name] = wrong(r, field)
		return
	}
}

// metadata makes a field of the metadata wrong, whatever the schema is.
func metadata(r *rand.Rand, object map[string]any) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
	}
	object["metadata"] = meta
	name := pick(r, "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels", "annotations",
		"ownerReferences", "finalizers", "managedFields", "deletionGracePeriodSeconds", "selfLink")
	switch {
	case chance(r, 2):
		meta[name] = wrong(r, &model{})
	case name == "managedFields":
		meta[name] = []any{map[string]any{"manager": text(r), "operation": pick(r, "Update", "Apply", "x"), "apiVersion": pick(r, "v1", "x/y/z", ""),
			"fieldsType": pick(r, "FieldsV1", "x"), "fieldsV1": pick[any](r, map[string]any{"f:": 1}, map[string]any{"k:{": nil}, map[string]any{"v:x": map[string]any{}}, "x", nil)}}
	case name == "ownerReferences":
		meta[name] = []any{map[string]any{"apiVersion": pick(r, "v1", ""), "kind": "A", "name": text(r), "uid": pick[any](r, "a", "", 1), "controller": pick[any](r, true, "x")}}
	case name == "labels" || name == "annotations":
		meta[name] = map[string]any{text(r): pick[any](r, "a", 1, nil, true, text(r))}
	default:
		meta[name] = text(r)
	}
}

// patch returns a patch of a type.
func (g *Generator) patch(r *rand.Rand, o operation, sample *unstructured.Unstructured, contentType string) string {
	switch types.PatchType(contentType) {
	case types.JSONPatchType:
		return jsonPatch(r)
	case types.StrategicMergePatchType:
		object := sample.Object
		if chance(r, 2) {
			directives(r, object)
		}
		return encode(o.malformed(r, object))
	case types.MergePatchType:
		if chance(r, 2) {
			sample.Object = map[string]any{}
		}
	}
	return encode(o.malformed(r, sample.Object))
}

// directives adds directives of strategic merge patches.
func directives(r *rand.Rand, object map[string]any) {
	at := object
	for range r.IntN(4) {
		var inside []map[string]any
		for _, key := range slices.Sorted(maps.Keys(at)) {
			if m, ok := at[key].(map[string]any); ok {
				inside = append(inside, m)
			}
		}
		if len(inside) == 0 {
			break
		}
		at = pick(r, inside...)
	}
	key := "x"
	if keys := slices.Sorted(maps.Keys(at)); len(keys) > 0 {
		key = pick(r, keys...)
	}
	name := pick(r, "$patch", "$retainKeys", "$setElementOrder/"+key, "$deleteFromPrimitiveList/"+key, "$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers",
		"$setElementOrder/ownerReferences", "$patch/"+key)
	at[name] = pick[any](r, "delete", "replace", "merge", "x", wrong(r, &model{}), []any{key}, []any{map[string]any{key: "a"}}, []any{map[string]any{"$patch": "delete"}})
}

func jsonPatch(r *rand.Rand) string {
	operations := []any{}
	for range 1 + r.IntN(3) {
		o := map[string]any{
			"op": pick[any](r, "add", "remove", "replace", "move", "copy", "test", "x", nil, 1),
			"path": pick[any](r, "", "/", "/spec", "/metadata/labels", "/metadata/labels/-", "/metadata/name", "/spec/taints/-1", "/spec/taints/99999999999", "/~2", "/metadata/managedFields",
				"/metadata/managedFields/0/fieldsV1", "/status", "/kind", "/apiVersion", "spec", nil, 1, text(r), "/spec/"+text(r)),
		}
		if !chance(r, 4) {
			o["value"] = wrong(r, &model{})
		}
		if chance(r, 3) {
			o["from"] = pick[any](r, "/spec", "/metadata", "", "/x", 1)
		}
		operations = append(operations, o)
	}
	return encode(operations)
}

// deleteOptions returns options for a deletion, which may be of the requested API version.
func deleteOptions(r *rand.Rand, o operation) any {
	if chance(r, 10) {
		return wrong(r, &model{})
	}
	options := map[string]any{
		"kind":       pick[any](r, "DeleteOptions", "DeleteOptions", "DeleteOptions", o.kind.Kind, "Status", "", nil, 1),
		"apiVersion": pick[any](r, "v1", "meta.k8s.io/v1", o.kind.GroupVersion().String(), o.kind.GroupVersion().String(), "x", "a/b/c", nil, 1),
	}
	if chance(r, 6) {
		options = map[string]any{}
	}
	for range r.IntN(3) {
		name := pick(r, "gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy", "dryRun", "ignoreStoreReadErrorWithClusterBreakingPotential")
		options[name] = wrong(r, &model{})
		switch {
		case name == "preconditions" && chance(r, 2):
			options[name] = map[string]any{"uid": text(r), "resourceVersion": pick[any](r, "x", "-1", "1", text(r))}
		case name == "propagationPolicy" && chance(r, 2):
			options[name] = pick(r, "Orphan", "Foreground", "Background", "x")
		case name == "dryRun" && chance(r, 2):
			options[name] = pick[any](r, []any{"All"}, []any{"All", "All"}, []any{"x"}, []any{})
		case chance(r, 3):
			options[name] = true
		}
	}
	return options
}

// damaged returns a body that is no longer an object.
func damaged(r *rand.Rand, body string) string {
	cut := r.IntN(len(body) + 1)
	switch r.IntN(10) {
	case 0:
		return body[:cut]
	case 1:
		return body + body
	case 2:
		return "\ufeff" + body
	case 3:
		return body[:cut] + pick(r, "\x00", "\xff", "\xc0\x80", "}", ",", "\\", "\u2028") + body[cut:]
	case 4:
		return pick(r, "null", "[]", "{}", "1", `""`, "true", " ", "\n", "[{}]", "[[]]", "nul")
	case 5:
		return strings.Repeat(pick(r, "[", `{"a":`, `[{"a":`), pick(r, 500, 20000))
	case 6:
		return strings.Replace(body, "{", `{"spec":1,"spec":{},"metadata":null,`, 1)
	case 7:
		return strings.Replace(body, "{", "{"+strings.Repeat(`"a":1,`, 3000), 1)
	case 8:
		return strings.ToUpper(body)
	default:
		return `{"kind":"List","apiVersion":"v1","items":[` + body + `]}`
	}
}

// yaml returns YAML with features that JSON does not have.
func yaml(r *rand.Rand, body string) string {
	return pick(r,
		"a: &a [*a]\n", "a: &a {b: *a}\n", "<<: {kind: A}\n", "? [a]\n: b\n", "? {a: b}\n: c\n", "kind: !!binary a\n", "kind: !x y\n", "1: a\n", "null: a\n", "true: a\n", "~: ~\n",
		"---\n"+body+"\n---\n"+body, "%YAML 9.9\n---\n"+body, "a: 'b\n", "\t- a", "a: 0777\nb: 1_000\nc: .inf\nd: .nan\ne: 2001-01-01\n", "- a\n- b\n", "!!set {a}\n",
		strings.TrimSuffix(body, "}")+`,"1": !!float 1, ? 2 : 3}`, strings.TrimSuffix(body, "}")+`,x: .nan}`, strings.TrimSuffix(body, "}")+`,x: .inf}`)
}
