// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ignorefields

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n", "labels": {"a.b/c": "x", "~": "y"}}, "spec": {"replicas": 3, "template": {"spec": {
	"containers": [{"name": "a", "image": "i1"}, {"name": "b", "image": "i2"}, {"name": "c", "image": "i3"}]}}}}`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

func present(field workv1.IgnoreField) []workv1.IgnoreField {
	field.Condition = workv1.IgnoreFieldsConditionOnSpokePresent
	return []workv1.IgnoreField{field}
}

// without returns the JSON of a Deployment after a change.
func without(t *testing.T, change func(spec, labels map[string]any)) map[string]any {
	t.Helper()
	o := object(t, deployment).Object
	change(o["spec"].(map[string]any), o["metadata"].(map[string]any)["labels"].(map[string]any))
	return o
}

func containers(spec map[string]any) []any {
	return spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
}

func TestPrepare(t *testing.T) {
	none := func(spec, labels map[string]any) {}
	replicas := func(spec, labels map[string]any) { delete(spec, "replicas") }
	images := func(spec, labels map[string]any) {
		for _, c := range containers(spec) {
			delete(c.(map[string]any), "image")
		}
	}
	for name, test := range map[string]struct {
		field workv1.IgnoreField
		want  func(spec, labels map[string]any)
		err   string
	}{
		"W035: a path":             {workv1.IgnoreField{JSONPaths: []string{".spec.replicas"}}, replicas, ""},
		"W036: a pointer":          {workv1.IgnoreField{JSONPointers: []string{"/spec/replicas"}}, replicas, ""},
		"in all items":             {workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[*].image"}}, images, ""},
		"anywhere":                 {workv1.IgnoreField{JSONPaths: []string{"..image"}}, images, ""},
		"in some":                  {workv1.IgnoreField{JSONPaths: []string{`.spec.template.spec.containers[?(@.name=="a")].image`}}, func(spec, _ map[string]any) { delete(containers(spec)[0].(map[string]any), "image") }, ""},
		"an escaped key":           {workv1.IgnoreField{JSONPaths: []string{`.metadata.labels.a\.b/c`}}, func(_, labels map[string]any) { delete(labels, "a.b/c") }, ""},
		"escaped pointers":         {workv1.IgnoreField{JSONPointers: []string{"/metadata/labels/a.b~1c", "/metadata/labels/~0"}}, func(_, labels map[string]any) { clear(labels) }, ""},
		"items by pointers":        {workv1.IgnoreField{JSONPointers: []string{"/spec/template/spec/containers/1", "/spec/template/spec/containers/1", "/spec/template/spec/containers/0/image"}}, nil, ""},
		"what is not there":        {workv1.IgnoreField{JSONPaths: []string{".a.b", ".spec.replicas.x", ".spec.template.spec.containers[7].x", ".spec[0].x"}, JSONPointers: []string{"/a/b", "/spec/replicas/x", "/spec/template/spec/containers/3", "/spec/template/spec/containers/-", "/spec/template/spec/containers/01", "/spec/template/spec/containers/-1", "/"}}, none, ""},
		"an item by a path":        {workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[0]"}}, nil, "JSON path error in '.spec.template.spec.containers[0]': expected a path that ends in the name of a field, such as .spec.replicas"},
		"everything":               {workv1.IgnoreField{JSONPaths: []string{""}}, nil, "JSON path error in '': expected a path that ends in the name of a field, such as .spec.replicas"},
		"no path":                  {workv1.IgnoreField{JSONPaths: []string{"..["}}, nil, "JSON path error in '..[': unterminated array"},
		"no pointer":               {workv1.IgnoreField{JSONPointers: []string{"spec"}}, nil, "JSON Pointer error in 'spec': expected a pointer that begins with /, such as /spec/replicas"},
		"everything, by a pointer": {workv1.IgnoreField{JSONPointers: []string{""}}, nil, "JSON Pointer error in '': expected a pointer that begins with /, such as /spec/replicas"},
		"a broken escape":          {workv1.IgnoreField{JSONPointers: []string{"/a~2"}}, nil, "JSON Pointer error in '/a~2': expected ~0 for ~ and ~1 for /, got another character after ~"},
		"the name":                 {workv1.IgnoreField{JSONPaths: []string{".metadata.name"}}, nil, "expected fields without which an object is still the same: apiVersion, kind, metadata.name and metadata.namespace cannot be ignored"},
		"all of the metadata":      {workv1.IgnoreField{JSONPointers: []string{"/metadata"}}, nil, "expected fields without which an object is still the same: apiVersion, kind, metadata.name and metadata.namespace cannot be ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, deployment)
			p, err := Prepare(manifest, present(test.field))
			if test.err != "" {
				if err == nil || err.Error() != test.err || !errors.Is(err, status.ErrIgnoreFields) {
					t.Fatalf("got %v\nwant %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := func(spec, _ map[string]any) {
				spec["template"].(map[string]any)["spec"].(map[string]any)["containers"] = []any{map[string]any{"name": "a"}}
			}
			if test.want != nil {
				want = test.want
			}
			for object, expected := range map[*unstructured.Unstructured]map[string]any{p.Reduced: without(t, want), p.Whole: without(t, none)} {
				if hash := object.GetAnnotations()[workv1.ManifestConfigSpecHashAnnotationKey]; hash != p.Hash || len(hash) != 32 || !p.Unchanged(object.GetAnnotations()) {
					t.Errorf("the hash is %q, and %q in the annotation", p.Hash, hash)
				}
				object.SetAnnotations(nil)
				if !reflect.DeepEqual(object.Object, expected) {
					t.Errorf("got  %v\nwant %v", object.Object, expected)
				}
			}
			if !reflect.DeepEqual(manifest, object(t, deployment)) {
				t.Errorf("the manifest was changed: %v", manifest)
			}
		})
	}
}

// A manifest has changed unless only ignored fields have.
func TestPrepare_Hash(t *testing.T) {
	hash := func(text string, fields ...workv1.IgnoreField) string {
		p, err := Prepare(object(t, text), fields)
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash
	}
	always := workv1.IgnoreField{JSONPaths: []string{".spec.replicas"}}
	changed := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".spec.replicas", "..["}}
	more := strings.Replace(deployment, `"replicas": 3`, `"replicas": 5`, 1)
	image := strings.Replace(deployment, "i1", "i9", 1)
	if hash(deployment, always) != hash(more, always) || hash(deployment, always) == hash(image, always) {
		t.Error("what is ignored does not count, and all else does")
	}
	if hash(deployment, changed) == hash(more, changed) {
		t.Error("what is ignored when somebody has changed it counts: it is sent with the next manifest")
	}
	if got := hash(deployment); got != "" {
		t.Errorf("without ignoreFields there is the hash %s", got)
	}
	var none Prepared
	if none.Unchanged(nil) {
		t.Error("without a hash, nothing is known to be unchanged")
	}
	// This is the hash of other agents, for `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}`.
	text := "&{map[apiVersion:v1 data:map[x:1] kind:ConfigMap metadata:map[name:a]]}"
	if got := fmt.Sprint(object(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}`)); got != text {
		t.Errorf("an object is written as %s", got)
	}
	if got := hash(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "creationTimestamp": null}, "data": {"x": "1"}}`, always); got != "6a820ac83ba491a550cca628a268f25e" {
		t.Errorf("got the hash %s", got)
	}
}

// W038: null creationTimestamps are removed from metadata at any depth; others are not.
func TestPrepare_StripsTimes(t *testing.T) {
	work := `{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "w", "creationTimestamp": null}, "spec": {"creationTimestamp": null, "workload": {"manifests": [
		{"metadata": {"creationTimestamp": null, "name": "a"}}, {"template": {"metadata": {"creationTimestamp": null}}}, {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, {"metadata": null}]}}}`
	want := `{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "w"}, "spec": {"creationTimestamp": null, "workload": {"manifests": [
		{"metadata": {"name": "a"}}, {"template": {"metadata": {}}}, {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, {"metadata": null}]}}}`
	p, err := Prepare(object(t, work), nil)
	if err != nil || !reflect.DeepEqual(p.Whole, object(t, want)) || p.Reduced != p.Whole {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestPrepare_IsBounded(t *testing.T) {
	manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	var wide []any
	for range 100_000 {
		wide = append(wide, map[string]any{"a": "b"})
	}
	manifest.Object["wide"] = wide
	if _, err := Prepare(manifest, present(workv1.IgnoreField{JSONPaths: []string{".wide" + strings.Repeat("[0:100000,0:100000]", 3) + ".a"}})); err != nil {
		t.Errorf("items that are no lists are not there: %v", err)
	}
	paths := []string{".wide[" + strings.Repeat("0:100000,", 50) + "0:100000].a"}
	if _, err := Prepare(manifest, present(workv1.IgnoreField{JSONPaths: paths})); err == nil || !strings.Contains(err.Error(), "visit too many values") {
		t.Errorf("got %v", err)
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add(".spec.replicas", "/spec/replicas", ".spec.replicas", deployment)
	f.Add("..image", "/spec/template/spec/containers/1/image", `.spec.template.spec.containers[] | select(.name == "a") | .image`, deployment)
	f.Add("", "", "", deployment)
	f.Add(`.metadata.labels.a\.b/c`, "/metadata/labels/~0", ".metadata.labels", deployment)
	f.Fuzz(func(t *testing.T, path, pointer, expression, text string) {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		before := fmt.Sprint(o)
		for _, field := range []workv1.IgnoreField{{JSONPaths: []string{path}}, {JSONPointers: []string{pointer}}, {JQPathExpressions: []string{expression}}} {
			p, err := Prepare(o, present(field))
			switch {
			case fmt.Sprint(o) != before:
				t.Errorf("%+v has changed %s to %v", field, before, o)
			case err != nil && !errors.Is(err, status.ErrIgnoreFields):
				t.Errorf("%+v: %v is not told as what it is", field, err)
			case err == nil && (identity(p.Reduced) != identity(o) || p.Hash == ""):
				t.Errorf("%+v: %v", field, p)
			case err == nil:
				// The remaining values must have the types of JSON.
				p.Reduced.DeepCopy()
			}
		}
		if len(text) < 1000 && len(expression) < 200 {
			compareWithDel(t, expression, o.Object)
		}
	})
}
