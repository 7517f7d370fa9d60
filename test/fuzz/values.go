// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// pick returns one of several values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// chance is true once in n times.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// raw returns JSON that no encoder of Go would write.
func raw(text string) json.RawMessage { return json.RawMessage(text) }

// texts are unexpected values for fields and parameters.
var texts = []string{
	"", " ", "x", "-", ".", "..", "../../x", "/", "a/b/c", "%", "%00", "%s%n", "*", "a,b", "a=b", "NaN", "-1", "1e400", "null", "true", "{}", "[]", "\"",
	"\x00", "a\nb", "\t", "\u0085", "\u2028", "\u202e", "\ufeff", "\ufffd", "é", "A", "😀", "a.b.c.d", "99999999999999999999", "0x10", "1Gi", "5m", "-5m",
	"1h1h", "9223372036854775808", "2006-01-02T15:04:05Z", "0000-00-00T00:00:00Z", "10000-01-01T00:00:00Z", "http://[::1", "https://a:b@c", "`", "<script>",
	"$(x)", "${x}", "{{.}}", "^(a+)+$", "a in (", "!", "self.x", "1 + ", "[(0",
}

// text returns a string that few fields accept.
func text(r *rand.Rand) string {
	if chance(r, 12) {
		return strings.Repeat(pick(r, "a", "a/", "é", "%", "\x00", "a."), pick(r, 64, 254, 1025, 5000))
	}
	return pick(r, texts...)
}

// numbers are numbers that no field accepts, or only some.
var numbers = []string{
	"0", "-1", "1", "0.5", "-0.0", "1e3", "2147483648", "-2147483649", "9007199254740993", "9223372036854775807", "9223372036854775808",
	"-9223372036854775809", "18446744073709551616", "1e400", "-1e400", "1e-400", "100000000000000000000000000000000000000",
}

// wrong returns a value of any type, mostly of a different one than in the schema.
func wrong(r *rand.Rand, m *model) any {
	for range 2 { // the same type is less useful
		if v, kind := anything(r); kind != m.Type {
			return v
		}
	}
	v, _ := anything(r)
	return v
}

// anything returns a value of any type, and its type.
func anything(r *rand.Rand) (value any, kind string) {
	switch r.IntN(12) {
	case 0:
		return nil, "null"
	case 1:
		return r.IntN(2) == 0, "boolean"
	case 2, 3:
		return raw(pick(r, numbers...)), "number"
	case 4, 5:
		return text(r), "string"
	case 6:
		return pick[any](r, []any{}, []any{nil}, []any{[]any{}}, []any{1, "a", nil, map[string]any{}}, []any{"a", "a"}), "array"
	case 7:
		inner, _ := anything(r)
		return []any{inner}, "array"
	case 8:
		return pick[any](r, map[string]any{}, map[string]any{"": nil}, map[string]any{"$patch": "delete"}, map[string]any{"a": map[string]any{"a": 1}}), "object"
	case 9:
		inner, _ := anything(r)
		return map[string]any{text(r): inner}, "object"
	case 10:
		depth := pick(r, 10, 300, 11000)
		if chance(r, 2) {
			return raw(strings.Repeat("[", depth) + strings.Repeat("]", depth)), "array"
		}
		return raw(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)), "object"
	default:
		return raw(`"` + pick(r, "\xff", "\xc0\x80", "\xed\xa0\x80", `\ud800`, `\u0000`, `\udc00\ud800`) + `"`), "string"
	}
}

// plausible returns a value according to the schema.
func (d *Document) plausible(r *rand.Rand, m *model, depth int) any {
	m = d.resolve(m)
	switch {
	case len(m.Enum) > 0:
		return pick(r, m.Enum...)
	case m.IntOrString:
		return pick[any](r, 1, "10%")
	case m.Type == "string" && m.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case m.Type == "string" && m.Format == "byte":
		return "YQ=="
	case m.Type == "string":
		return pick(r, "a", "b", "1.0.0", "True", "https://a.example.com")
	case m.Type == "boolean":
		return chance(r, 2)
	case m.Type == "integer" || m.Type == "number":
		return r.IntN(5)
	case m.Type == "array":
		items := []any{}
		for range r.IntN(3) {
			items = append(items, d.plausible(r, m.Items, depth-1))
		}
		return items
	case depth <= 0:
		return map[string]any{}
	}
	object := map[string]any{}
	if values := m.values(); values != nil {
		object["a"] = d.plausible(r, values, depth-1)
	}
	for _, name := range names(m) {
		if name != "metadata" && name != "apiVersion" && name != "kind" && !chance(r, 3) {
			object[name] = d.plausible(r, m.Properties[name], depth-1)
		}
	}
	return object
}

// token returns a continue token that no list has returned.
func token(r *rand.Rand) string {
	inside := pick(r, "", "{}", "x", "null", `{"v":"meta.k8s.io/v1","rv":-1,"start":"a"}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"../../../x"}`,
		`{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"a"}`, `{"v":"meta.k8s.io/v1","rv":0,"start":""}`, `{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`,
		`{"v":"meta.k8s.io/v1","rv":1,"start":"\u0000"}`, `{"v":"meta.k8s.io/v1","rv":"1","start":1}`)
	return pick(r, base64.RawURLEncoding, base64.StdEncoding).EncodeToString([]byte(inside))
}
