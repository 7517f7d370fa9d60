// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz creates malformed requests from the OpenAPI documents of an API server, and sends them: values of other types than in the schema,
// wrong encodings, parameters, options and names. A server must accept or reject each of them, and never fail.
//
// A request is determined by a seed and its number, so that a failure can be repeated.
package fuzz

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Generator creates requests.
type Generator struct {
	seed       uint64
	operations []operation
	samples    map[schema.GroupVersionKind][]*unstructured.Unstructured
	// all are the samples in the order in which they are created.
	all []*unstructured.Unstructured
}

// Request is one request.
type Request struct {
	Number                    int
	Method, Path, Query       string
	ContentType, Accept, Body string
	kind                      schema.GroupVersionKind
	client                    int
}

// String describes the request, with the beginning of its body.
func (q Request) String() string {
	body := q.Body
	if len(body) > 600 {
		body = fmt.Sprintf("%s… (%d bytes)", body[:600], len(body))
	}
	return fmt.Sprintf("request %d: %s %s?%s, Content-Type %q, Accept %q: %q", q.Number, q.Method, q.Path, q.Query, q.ContentType, q.Accept, body)
}

// New returns the generator of a seed. Samples are valid objects: requests are derived from them, and name them.
func New(seed uint64, documents [][]byte, samples []map[string]any) (*Generator, error) {
	all, err := operations(documents)
	if err != nil {
		return nil, err
	}
	g := &Generator{seed: seed, operations: all, samples: map[schema.GroupVersionKind][]*unstructured.Unstructured{}}
	for _, object := range samples {
		u := &unstructured.Unstructured{Object: object}
		g.all = append(g.all, u)
		g.samples[u.GroupVersionKind()] = append(g.samples[u.GroupVersionKind()], u)
	}
	return g, nil
}

// Request returns a request by its number. Successive numbers go through all operations.
func (g *Generator) Request(n int) Request {
	r := rand.New(rand.NewPCG(g.seed, uint64(n)))
	o := g.operations[n%len(g.operations)]
	sample := g.sample(r, o)
	q := Request{Number: n, Method: o.method, kind: o.kind, client: r.IntN(64), Accept: "application/json", ContentType: "application/json"}
	where := sample
	if chance(r, 8) {
		where = g.all[r.IntN(len(g.all))]
	}
	q.Path = path(r, o.path, where)
	g.fill(r, o, sample, &q)
	// A write with a wrong encoding or bad parameters is rejected before its body is read. So most only have a bad body.
	parameters := url.Values{}
	if o.method == "PATCH" && strings.HasPrefix(q.ContentType, "application/apply-patch") && !chance(r, 20) {
		parameters.Set("fieldManager", "fuzz")
		if chance(r, 2) {
			parameters.Set("force", "true")
		}
	}
	if o.method == "GET" || chance(r, 5) {
		for range 1 + r.IntN(3) {
			name := pick(r, append(slices.Clone(o.query), "x", "limit", "resourceVersion", "labelSelector")...)
			parameters.Add(name, value(r, name))
		}
	}
	if chance(r, 3) && o.method != "GET" {
		parameters.Set("fieldValidation", pick(r, "Strict", "Ignore", "Warn"))
	}
	if strings.Contains(o.action, "collection") { // a valid request must not delete all
		parameters.Add("labelSelector", pick(r, "no=object", "no in (object"))
	}
	q.Query = parameters.Encode()
	if chance(r, 12) {
		q.Query += pick(r, "&%", "&;", "&=&", "&\x7f", "&a=%zz", "&limit=%00")
	}
	if chance(r, 10) {
		q.Accept = pick(r, "", "*/*", "x", "application/vnd.kubernetes.protobuf", "application/cbor", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=x;v=y;g=z", "application/json;stream=watch", "text/html;q=x")
	}
	return q
}

// sample returns a valid object of the kind of an operation: one of the samples, or one derived from the schema.
func (g *Generator) sample(r *rand.Rand, o operation) *unstructured.Unstructured {
	for _, kind := range []schema.GroupVersionKind{o.kind, otherVersion(g, o.kind)} {
		if of := g.samples[kind]; len(of) > 0 {
			sample := of[r.IntN(len(of))].DeepCopy()
			sample.SetGroupVersionKind(o.kind)
			return sample
		}
	}
	object := map[string]any{}
	if o.model != nil {
		object, _ = o.document.plausible(r, o.model, 6).(map[string]any)
	}
	sample := &unstructured.Unstructured{Object: object}
	sample.SetGroupVersionKind(o.kind)
	sample.SetName("a")
	if strings.Contains(o.path, "{namespace}") {
		at := slices.IndexFunc(g.all, func(other *unstructured.Unstructured) bool { return other.GetNamespace() != "" })
		sample.SetNamespace(g.all[max(at, 0)].GetNamespace())
	}
	return sample
}

// otherVersion returns the first kind of the samples with the same name: views have the kinds of what they show.
func otherVersion(g *Generator, kind schema.GroupVersionKind) schema.GroupVersionKind {
	for _, other := range g.all {
		if other.GetKind() == kind.Kind {
			return other.GroupVersionKind()
		}
	}
	return kind
}

// path fills in names, some of which are invalid.
func path(r *rand.Rand, path string, of *unstructured.Unstructured) string {
	namespace, name := of.GetNamespace(), of.GetName()
	if chance(r, 12) {
		namespace = text(r)
	}
	if chance(r, 12) {
		name = text(r)
	}
	return strings.NewReplacer("{namespace}", url.PathEscape(namespace), "{name}", url.PathEscape(name)).Replace(path)
}

// value returns a value of a parameter.
func value(r *rand.Rand, name string) string {
	if chance(r, 4) {
		return text(r)
	}
	switch name {
	case "limit", "timeoutSeconds", "gracePeriodSeconds":
		return pick(r, "-1", "x", "1e3", "9223372036854775808", "9223372036854775807", "1", "0", "-9223372036854775808")
	case "continue":
		return token(r)
	case "resourceVersion":
		return pick(r, "x", "-1", "0", "1", "01", "1.0", "99999999999999999999", " 1")
	case "resourceVersionMatch":
		return pick(r, "Exact", "NotOlderThan", "x")
	case "fieldSelector":
		return pick(r, "a=b", "=", "metadata.name", "metadata.name=a,,", "metadata.name!=a", "spec.x==1", `metadata.name=\`, "metadata.name=a,metadata.name=b")
	case "labelSelector":
		return pick(r, "a in (", "!", "a notin ()", "=", "a=b,,", "a>x", "-=a", strings.Repeat("a=b,", 2000))
	case "dryRun":
		return pick(r, "All", "None", "all", "All,All")
	case "fieldValidation":
		return pick(r, "Strict", "strict", "x")
	case "fieldManager":
		return pick(r, "a\x00", "\n", strings.Repeat("m", 128), strings.Repeat("m", 129), "é")
	case "propagationPolicy":
		return pick(r, "Orphan", "Foreground", "Background", "x", "foreground")
	case "orphanDependents", "watch", "sendInitialEvents", "allowWatchBookmarks", "force", "pretty":
		return pick(r, "true", "1", "maybe", "TRUE", "false")
	case "timeout":
		return pick(r, "x", "-1s", "1e9h", "1")
	}
	return text(r)
}
