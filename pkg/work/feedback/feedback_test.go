// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "deploy1"}, "spec": {"share": 0.5, "paused": false},
	"status": {"readyReplicas": 2, "replicas": 3, "availableReplicas": 2, "none": null, "conditions": [
		{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}]}}`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

var wellKnownRule = workv1.FeedbackRule{Type: workv1.WellKnownStatusType}

// jsonPaths returns a rule with names and paths.
func jsonPaths(texts ...string) workv1.FeedbackRule {
	rule := workv1.FeedbackRule{Type: workv1.JSONPathsType}
	for i := 0; i < len(texts); i += 2 {
		rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: texts[i], Path: texts[i+1]})
	}
	return rule
}

func texts(values []workv1.FeedbackValue) (texts []string) {
	for i := range values {
		v := &values[i].Value
		text := values[i].Name + "=" + string(v.Type) + ":"
		switch {
		case v.Integer != nil:
			text += fmt.Sprint(*v.Integer)
		case v.String != nil:
			text += *v.String
		case v.Boolean != nil:
			text += fmt.Sprint(*v.Boolean)
		case v.JsonRaw != nil:
			text += *v.JsonRaw
		}
		texts = append(texts, text)
	}
	return texts
}

func TestRead(t *testing.T) {
	v1beta1 := jsonPaths("a", ".metadata.name", "b", ".metadata.name")
	v1beta1.JsonPaths[0].Version = "v1beta1"
	raw := Options{Raw: true}
	for name, test := range map[string]struct {
		object  string
		rules   []workv1.FeedbackRule
		options Options
		want    []string
		err     string
	}{
		"no rules": {object: deployment},
		"W039: a Deployment": {object: deployment, rules: []workv1.FeedbackRule{wellKnownRule},
			want: []string{"ReadyReplicas=Integer:2", "Replicas=Integer:3", "AvailableReplicas=Integer:2"}},
		"a Deployment without a status": {object: `{"apiVersion": "apps/v1", "kind": "Deployment"}`, rules: []workv1.FeedbackRule{wellKnownRule}},
		"a DaemonSet": {object: `{"apiVersion": "apps/v1", "kind": "DaemonSet", "status": {"numberReady": 1, "desiredNumberScheduled": 2, "numberAvailable": 0}}`,
			rules: []workv1.FeedbackRule{wellKnownRule}, want: []string{"NumberReady=Integer:1", "DesiredNumberScheduled=Integer:2", "NumberAvailable=Integer:0"}},
		"a Job": {object: `{"apiVersion": "batch/v1", "kind": "Job", "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}}`,
			rules: []workv1.FeedbackRule{wellKnownRule}, want: []string{"JobComplete=String:True", "JobSucceeded=Integer:1"}},
		"a Pod": {object: `{"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}`,
			rules: []workv1.FeedbackRule{wellKnownRule}, want: []string{"PodReady=String:False", "PodPhase=String:Running"}},
		"W040: a value beside one that is none": {object: deployment,
			rules: []workv1.FeedbackRule{jsonPaths("available", `.status.conditions[?(@.type=="Available")].status`, "conditions", ".status.conditions")},
			want:  []string{"available=String:True"}, err: "the type []interface {} of the value for conditions is not found"},
		"W041: an account": {object: `{"apiVersion": "v1", "kind": "ServiceAccount"}`, rules: []workv1.FeedbackRule{wellKnownRule},
			err: "cannot find the wellknown statuses for resource with gvk /v1, Kind=ServiceAccount"},
		"another version of a kind": {object: `{"apiVersion": "apps/v1beta1", "kind": "Deployment"}`, rules: []workv1.FeedbackRule{wellKnownRule},
			err: "cannot find the wellknown statuses for resource with gvk apps/v1beta1, Kind=Deployment"},
		"W042: versions": {object: deployment, rules: []workv1.FeedbackRule{v1beta1}, want: []string{"b=String:deploy1"},
			err: "version set in the path a is not matched for the related resource"},
		"W043: raw": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("conditions", ".status.conditions", "share", ".spec.share")}, options: raw,
			want: []string{`conditions=JsonRaw:[{"status":"True","type":"Available"},{"status":"False","type":"Progressing"}]`, "share=JsonRaw:0.5"}},
		"W044: both types": {object: deployment, rules: []workv1.FeedbackRule{wellKnownRule, jsonPaths("name", ".metadata.name")},
			want: []string{"ReadyReplicas=Integer:2", "Replicas=Integer:3", "AvailableReplicas=Integer:2", "name=String:deploy1"}},
		"missing, null, false": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("a", ".status.a.b", "none", ".status.none", "paused", ".spec.paused")},
			want: []string{"paused=Boolean:false"}},
		"several": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("a", ".status.conditions[*].type")}, options: raw, want: []string{"a=String:Available"}},
		"no path": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("a", "..[", "b", ".status.conditions[7].type")},
			err: "[failed to parse json path ..[ of a with error: unterminated array, failed to find value for b with error: array index out of bounds: index 7, length 2]"},
		"twice": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("a", ".status.replicas"), jsonPaths("a", ".status.readyReplicas")}, want: []string{"a=Integer:3"},
			err: "duplicate name a: the first one is used"},
		"no type": {object: deployment, rules: []workv1.FeedbackRule{{}}, err: `expected the type WellKnownStatus or JSONPaths of a rule, got ""`},
		"long": {object: deployment, rules: []workv1.FeedbackRule{jsonPaths("conditions", ".status.conditions")}, options: Options{Raw: true, MaxJSONRaw: 50},
			err: "the length of returned json raw string for name conditions is larger than the maximum length 50"},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := Read(object(t, test.object), test.rules, test.options)
			if got := texts(values); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if got := fmt.Sprint(err); got != test.err && (err != nil || test.err != "") {
				t.Errorf("got the error  %v\nwant the error %s", got, test.err)
			}
		})
	}
}

// No rule reads the data of a Secret, whatever its path.
func TestRead_NoSecrets(t *testing.T) {
	secret := object(t, `{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "s3cret"}},
		"data": {"password": "s3cret"}, "stringData": {"password": "s3cret"}}`)
	paths := []string{"a", ".data.password", "b", "..", "c", "$", "d", "", "e", ".*", "f", "..password", "g", ".stringData", "h", ".metadata.annotations", "i", ".metadata",
		"j", `['data','stringData']`, "k", "...*", "l", ".data..", "m", "...*...*", "name", ".metadata.name"}
	values, err := Read(secret, []workv1.FeedbackRule{wellKnownRule, jsonPaths(paths...)}, Options{Raw: true})
	if strings.Contains(fmt.Sprint(texts(values), err), "s3cret") || !slices.Contains(texts(values), "name=String:s") {
		t.Errorf("got %v, %v", texts(values), err)
	}
	if err == nil || !strings.Contains(err.Error(), "failed to find value for a with error: of a Secret,") {
		t.Errorf("the error does not say why: %v", err)
	}
	// An object that has lost its kind may not be read either.
	secret.SetKind("")
	if values, err := Read(secret, []workv1.FeedbackRule{jsonPaths("a", ".data.password")}, Options{}); len(values) > 0 || err == nil {
		t.Errorf("without a kind: %v, %v", texts(values), err)
	}
}

// However much is requested, and whatever the object has, values and errors stay small, and Read returns.
func TestRead_IsBounded(t *testing.T) {
	items := make([]any, 50_000)
	for i := range items {
		items[i] = map[string]any{"x": strings.Repeat("y", 20)}
	}
	big := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "items": items, "long": strings.Repeat("z", 1<<20),
		"text": strings.Repeat("z", MaxText), "raw": strings.Repeat("<", MaxJSONRaw/2)}}
	var paths []string
	for i := range 200 {
		paths = append(paths, fmt.Sprint("text", i), ".text", fmt.Sprint("all", i), "...*...*", fmt.Sprint("long", i), ".long", fmt.Sprint("items", i), ".items", fmt.Sprint("raw", i), "['raw','items']")
	}
	values, err := Read(big, []workv1.FeedbackRule{jsonPaths(paths...)}, Options{Raw: true})
	size := 0
	for i := range values {
		size += len(values[i].Name) + sizeOf(&values[i].Value)
	}
	if size > MaxTotal || len(values) == 0 {
		t.Errorf("%d values have %d bytes", len(values), size)
	}
	if err == nil || len(err.Error()) > 3000 || !strings.Contains(err.Error(), "more errors") {
		t.Errorf("got %v", err)
	}
}

func TestRead_LimitsTotalSize(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "text": strings.Repeat("z", MaxText-10)}}
	var paths []string
	for i := range 10 {
		paths = append(paths, fmt.Sprint("text", i), ".text")
	}
	values, err := Read(o, []workv1.FeedbackRule{jsonPaths(paths...), jsonPaths("name", ".kind")}, Options{})
	if len(values) != 5 || err == nil || !strings.Contains(err.Error(), "the values of the object are longer than 65536 bytes: text4 is left out") {
		t.Errorf("%d values, %v", len(values), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(".status.conditions[?(@.type==\"Available\")].status", deployment)
	f.Add("..", `{"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}}`)
	f.Add("...*...*", `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": [1, 1.5, true, null, "x"]}}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		before := fmt.Sprint(o)
		values, _ := Read(o, []workv1.FeedbackRule{jsonPaths("a", path), wellKnownRule}, Options{Raw: true})
		for i := range values {
			v := &values[i].Value
			switch {
			case v.Type == workv1.Integer && v.Integer != nil, v.Type == workv1.Boolean && v.Boolean != nil:
			case v.Type == workv1.String && v.String != nil && len(*v.String) <= MaxText:
			case v.Type == workv1.JsonRaw && v.JsonRaw != nil && len(*v.JsonRaw) <= MaxJSONRaw && utf8.ValidString(*v.JsonRaw):
			default:
				t.Errorf("%s of %s: %+v", path, text, v)
			}
		}
		if fmt.Sprint(o) != before {
			t.Errorf("%s has changed %s to %v", path, before, o)
		}
	})
}
