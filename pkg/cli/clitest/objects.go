// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// AsMap returns an object as a server stores it.
func AsMap(o runtime.Object) (map[string]any, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		kinds, _, err = kit.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err == nil {
		(&unstructured.Unstructured{Object: object}).SetGroupVersionKind(kinds[0])
	}
	return object, err
}

// PathOf returns the path of an object.
func PathOf(object map[string]any) string {
	u := &unstructured.Unstructured{Object: object}
	for resource, kind := range Served[u.GetAPIVersion()] {
		if strings.TrimPrefix(kind, "*") != u.GetKind() {
			continue
		}
		path := root(u.GetAPIVersion())
		if strings.HasPrefix(kind, "*") {
			path += "/namespaces/" + u.GetNamespace()
		}
		return path + "/" + resource + "/" + u.GetName()
	}
	panic("not served: " + u.GetAPIVersion() + " " + u.GetKind())
}

func root(groupVersion string) string {
	if groupVersion == "v1" {
		return "/api/v1"
	}
	return "/apis/" + groupVersion
}

// do handles a request for one object or a list like an API server, as far as commands need it.
func (s *Server) do(r *http.Request, body []byte) (int, any) {
	path := r.URL.Path
	if kind, collection := collectionKind(path); collection {
		if r.Method == http.MethodGet {
			return http.StatusOK, s.list(r, kind)
		}
		return s.create(r, path, body)
	}
	object := s.Objects[path]
	if object == nil && r.Method != http.MethodPatch {
		// A subresource reads and writes its object.
		path = path[:strings.LastIndex(path, "/")]
		object = s.Objects[path]
		if _, collection := collectionKind(path); collection || object == nil {
			return StatusOf(apierrors.NewNotFound(resourceOf(r.URL.Path), NameOf(r.URL.Path)))
		}
	}
	switch r.Method {
	case http.MethodPatch:
		return s.patch(r, body)
	case http.MethodPut:
		changed, err := Decode(body)
		if err != nil {
			return StatusOf(apierrors.NewBadRequest(err.Error()))
		}
		s.Objects[path] = changed
		return http.StatusOK, changed
	case http.MethodDelete:
		delete(s.Objects, path)
	}
	return http.StatusOK, object
}

func (s *Server) create(r *http.Request, collection string, body []byte) (int, any) {
	object, err := Decode(body)
	if err != nil {
		return StatusOf(apierrors.NewBadRequest(err.Error()))
	}
	u := &unstructured.Unstructured{Object: object}
	if u.GetName() == "" {
		u.SetName(u.GetGenerateName() + "x")
	}
	path := collection + "/" + u.GetName()
	if s.Objects[path] != nil {
		return StatusOf(apierrors.NewAlreadyExists(resourceOf(path), u.GetName()))
	}
	u.SetUID(types.UID("made-" + strconv.Itoa(len(s.Asked))))
	if r.URL.Query().Get("dryRun") == "" {
		s.Objects[path] = object
	}
	return http.StatusCreated, object
}

// patch merges. An object that is applied is merged into the existing one, or created.
func (s *Server) patch(r *http.Request, body []byte) (int, any) {
	path := r.URL.Path
	object := s.Objects[path]
	if object == nil {
		if parent := s.Objects[path[:strings.LastIndex(path, "/")]]; parent != nil {
			path, object = path[:strings.LastIndex(path, "/")], parent
		}
	}
	if object == nil {
		if r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
			return StatusOf(apierrors.NewNotFound(resourceOf(path), NameOf(path)))
		}
		object = map[string]any{}
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return StatusOf(apierrors.NewBadRequest(err.Error()))
	}
	merge(object, patch)
	s.Objects[path] = object
	return http.StatusOK, object
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, ok := value.(map[string]any)
		have, had := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok && had:
			merge(have, below)
		default:
			into[key] = value
		}
	}
}

// list supports any selector, even those that a real server does not support for the resource.
func (s *Server) list(r *http.Request, kind string) any {
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return apierrors.NewBadRequest(err.Error()).ErrStatus
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return apierrors.NewBadRequest(err.Error()).ErrStatus
	}
	base, resource := r.URL.Path[:strings.LastIndex(r.URL.Path, "/")], NameOf(r.URL.Path)
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(s.Objects)) {
		at := path[:strings.LastIndex(path, "/")]
		if !strings.HasPrefix(at, base+"/") || NameOf(at) != resource {
			continue
		}
		u := &unstructured.Unstructured{Object: s.Objects[path]}
		if byLabel.Matches(labels.Set(u.GetLabels())) && byField.Matches(fieldsOf{u.Object}) {
			items = append(items, u.Object)
		}
	}
	start, _ := strconv.Atoi(query.Get("continue"))
	meta := map[string]any{"resourceVersion": "7"}
	items = items[start:]
	if s.PageSize > 0 && len(items) > s.PageSize && query.Get("limit") != "" {
		items, meta["continue"] = items[:s.PageSize], fmt.Sprint(start+s.PageSize)
	}
	apiVersion := strings.TrimPrefix(strings.TrimPrefix(base, "/apis/"), "/api/")
	apiVersion, _, _ = strings.Cut(apiVersion, "/namespaces/")
	return map[string]any{"kind": kind + "List", "apiVersion": apiVersion, "metadata": meta, "items": items}
}

type fieldsOf struct{ object map[string]any }

func (f fieldsOf) Has(field string) bool { return f.Get(field) != "" }

func (f fieldsOf) Get(field string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(f.object, strings.Split(field, ".")...)
	return fmt.Sprint(value)
}

// collectionKind returns the kind of the objects of a list's path.
func collectionKind(path string) (string, bool) {
	for groupVersion, resources := range Served {
		rest, ok := strings.CutPrefix(path, root(groupVersion)+"/")
		parts := strings.Split(rest, "/")
		if ok && len(parts) == 3 && parts[0] == "namespaces" {
			parts = parts[2:]
		}
		if kind, known := resources[parts[0]]; ok && known && len(parts) == 1 {
			return strings.TrimPrefix(kind, "*"), true
		}
	}
	return "", false
}

// NameOf returns the last part of a path.
func NameOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func resourceOf(path string) schema.GroupResource {
	parts := strings.Split(path, "/")
	return schema.GroupResource{Group: parts[2], Resource: parts[len(parts)-2]}
}

// StatusOf returns the response to a request that fails.
func StatusOf(err *apierrors.StatusError) (int, any) { return int(err.ErrStatus.Code), err.ErrStatus }

// Decode reads an object in any of the formats that clients send.
func Decode(body []byte) (map[string]any, error) {
	var object map[string]any
	if json.Unmarshal(body, &object) == nil {
		return object, nil
	}
	decoded, _, err := kubescheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return AsMap(decoded)
}

// NestedNumber reads a number, which is an int64 or a float64.
func NestedNumber(object map[string]any, path ...string) (float64, bool, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	switch n := value.(type) {
	case int64:
		return float64(n), found, err
	case float64:
		return n, found, err
	}
	return 0, found, err
}

// Object returns an object of the server, and fails if it does not exist.
func Object[T any](t *testing.T, s *Server, path string) *T {
	t.Helper()
	have := s.Get(path)
	if have == nil {
		t.Fatalf("there is no %s in %q", path, s.Paths())
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(have.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
