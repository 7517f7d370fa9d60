// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

func read(t *testing.T, manifest string) *archive.Archive {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	entries := tar.NewWriter(zipped)
	err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Mode: 0o644, Size: int64(len(manifest))})
	if err == nil {
		_, err = entries.Write([]byte(manifest))
	}
	if err := errors.Join(err, entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	a, err := archive.ReadPacked(packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// all returns the text of all manifests of a work.
func all(spec *workv1.ManifestWorkSpec) string {
	var texts []string
	for _, m := range spec.Workload.Manifests {
		texts = append(texts, string(m.Raw))
	}
	return strings.Join(texts, "\n")
}

func reason(err error) string {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault.Reason
	}
	return fmt.Sprint(err)
}

const definition = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shared}
`

func TestWork_SeveralServices(t *testing.T) {
	node := &edgev1alpha1.EdgeNodeStatus{Namespace: "agent", NamespaceScoped: new(bool)}
	web := Part{Archive: read(t, definition+"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\n"), Namespace: "blue"}
	db := Part{Archive: read(t, definition+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: db}\n"), Namespace: "agent"}
	spec, begins, asks, err := Work(node, []Part{web, db})
	if err != nil || !asks || len(spec.Workload.Manifests) != 5 || strings.Count(all(spec), "ClusterRole") != 1 {
		t.Fatalf("got %s, %v", all(spec), err)
	}
	// Two namespaces, then the role and the Job, then the Secret.
	if !slices.Equal(begins, []int{2, 4}) {
		t.Errorf("the services begin at %d", begins)
	}
	// A withheld service leaves its namespace, and the objects that it shares.
	web.Withheld = true
	rest, begins, asks, err := Work(node, []Part{web, db})
	if err != nil || asks || strings.Contains(all(rest), "Job") || strings.Count(all(rest), "ClusterRole") != 1 || strings.Count(all(rest), `"kind":"Namespace"`) != 2 ||
		!slices.Equal(begins, []int{2, 2}) {
		t.Errorf("got %s, which begin at %d, %v", all(rest), begins, err)
	}
	web.Withheld, db.Withheld = false, true
	if _, begins, _, err := Work(node, []Part{web, db}); err != nil || !slices.Equal(begins, []int{2, 4}) {
		t.Errorf("the services begin at %d, %v", begins, err)
	}
	db.Withheld = false
	// This includes the default namespace of services.
	if strings.Count(all(spec), `"kind":"Namespace"`) != 2 || len(spec.DeleteOption.SelectivelyOrphan.OrphaningRules) != 2 {
		t.Errorf("got %s", all(spec))
	}
	job := spec.ManifestConfigs[len(spec.ManifestConfigs)-1]
	if job.ResourceIdentifier != (workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Name: "*", Namespace: "*"}) || len(job.ConditionRules) != 3 {
		t.Errorf("of jobs it is asked %+v", job)
	}
	// With only objects that have no progress, nothing is waited for.
	_, _, asks, err = Work(node, []Part{db})
	if err != nil || asks {
		t.Errorf("the agent is asked for the progress of a Secret, %v", err)
	}

	other := web
	other.Archive = read(t, strings.ReplaceAll(definition, "shared}", "shared, labels: {a: b}}"))
	if _, _, _, err := Work(node, []Part{web, other}); reason(err) != ReasonTwice {
		t.Errorf("two roles of one name: %v", err)
	}
	same := web
	if _, _, _, err := Work(node, []Part{web, same}); reason(err) != ReasonTwice {
		t.Errorf("two jobs of one name: %v", err)
	}
	var many []string
	for i := range archive.MaxObjects {
		many = append(many, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i))
	}
	three := Part{Archive: read(t, strings.Join(many, "---\n")), Namespace: "blue"}
	if _, _, _, err := Work(node, []Part{three, three, three}); reason(err) != ReasonTooMany {
		t.Errorf("too many objects: %v", err)
	}
}

// An agent that has not reported its scope is treated as having the fewest rights.
func TestWork_AgentWithUnknownScope(t *testing.T) {
	spec, _, _, err := Work(&edgev1alpha1.EdgeNodeStatus{}, []Part{{Archive: read(t, definition+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: db}\n"), Namespace: "blue"}})
	if err != nil || len(spec.Workload.Manifests) != 1 || spec.DeleteOption.PropagationPolicy != workv1.DeletePropagationPolicyTypeForeground {
		t.Errorf("got %s, %v", all(spec), err)
	}
}

func TestWork_VariablesInAllContainers(t *testing.T) {
	part := Part{Archive: read(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: a}, {name: b, env: [{name: X, value: own-too}]}, {name: c, env: [{name: HZN_ENV_VARS, value: own}]}]}}}
`), Namespace: "blue", Variables: map[string]string{"COLOR": "red"}, Suffix: "abc"}
	scoped := true
	spec, _, _, err := Work(&edgev1alpha1.EdgeNodeStatus{NamespaceScoped: &scoped}, []Part{part})
	if err != nil {
		t.Fatal(err)
	}
	text := all(spec)
	if strings.Count(text, `"value":"hzn-env-vars-abc"`) != 2 || !strings.Contains(text, `"value":"own"`) || !strings.Contains(text, `"value":"own-too"`) ||
		!strings.Contains(text, `{"apiVersion":"v1","data":{"COLOR":"red"},"kind":"ConfigMap","metadata":{"name":"hzn-env-vars-abc","namespace":"blue"}}`) {
		t.Errorf("got %s", text)
	}
	for _, bad := range []string{"containers: [1]", "containers: 1", "containers: [{env: x}]"} {
		part.Archive = read(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {"+bad+"}}}\n")
		if _, _, _, err := Work(&edgev1alpha1.EdgeNodeStatus{NamespaceScoped: &scoped}, []Part{part}); reason(err) != ReasonNotRewritable {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestVariables(t *testing.T) {
	text := func(s string) edgev1alpha1.Value {
		return edgev1alpha1.Value{Type: edgev1alpha1.ValueString, String: s}
	}
	number := edgev1alpha1.Value{Type: edgev1alpha1.ValueNumber, Number: 1.5}
	input := func(change func(*edgev1alpha1.ServiceInput), values ...any) edgev1alpha1.ServiceInput {
		in := edgev1alpha1.ServiceInput{ServiceUrl: "web"}
		for i := 0; i < len(values); i += 2 {
			in.Inputs = append(in.Inputs, edgev1alpha1.Input{Name: values[i].(string), Value: values[i+1].(edgev1alpha1.Value)})
		}
		if change != nil {
			change(&in)
		}
		return in
	}
	red := "red"
	color := []edgev1alpha1.Variable{{Name: "COLOR", DefaultValue: &red}}
	typed := func(kind edgev1alpha1.PropertyType) []edgev1alpha1.Variable {
		return []edgev1alpha1.Variable{{Name: "COLOR", Type: kind}}
	}
	for name, c := range map[string]struct {
		variables []edgev1alpha1.Variable
		inputs    []edgev1alpha1.ServiceInput
		want      string
	}{
		"none":                  {nil, []edgev1alpha1.ServiceInput{input(nil, "COLOR", text("blue"))}, "map[]"},
		"the default":           {color, nil, "map[COLOR:red]"},
		"what is set":           {color, []edgev1alpha1.ServiceInput{input(nil, "COLOR", text("blue"), "OTHER", text("x"))}, "map[COLOR:blue]"},
		"the last":              {color, []edgev1alpha1.ServiceInput{input(nil, "COLOR", text("blue")), input(nil, "COLOR", text("green"))}, "map[COLOR:green]"},
		"of another service":    {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceUrl = "db" }, "COLOR", text("blue"))}, "map[COLOR:red]"},
		"of another org":        {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceOrgid = "x" }, "COLOR", text("blue"))}, "map[COLOR:red]"},
		"of this org":           {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceOrgid = "tools" }, "COLOR", text("blue"))}, "map[COLOR:blue]"},
		"of another arch":       {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceArch = "arm64" }, "COLOR", text("blue"))}, "map[COLOR:red]"},
		"of later versions":     {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceVersionRange = "[2.0.0,INFINITY)" }, "COLOR", text("blue"))}, "map[COLOR:red]"},
		"of this version":       {color, []edgev1alpha1.ServiceInput{input(func(in *edgev1alpha1.ServiceInput) { in.ServiceVersionRange = "[1.0.0,2.0.0)" }, "COLOR", text("blue"))}, "map[COLOR:blue]"},
		"missing":               {typed(""), nil, ReasonInputMissing},
		"a number":              {typed(edgev1alpha1.PropertyFloat), []edgev1alpha1.ServiceInput{input(nil, "COLOR", number)}, "map[COLOR:1.5]"},
		"no whole number":       {typed(edgev1alpha1.PropertyInt), []edgev1alpha1.ServiceInput{input(nil, "COLOR", number)}, ReasonInputInvalid},
		"a number for a text":   {typed(edgev1alpha1.PropertyString), []edgev1alpha1.ServiceInput{input(nil, "COLOR", number)}, ReasonInputInvalid},
		"a list":                {typed(edgev1alpha1.PropertyList), []edgev1alpha1.ServiceInput{input(nil, "COLOR", edgev1alpha1.Value{Type: edgev1alpha1.ValueList, List: []string{"a", "b"}})}, "map[COLOR:a b]"},
		"true":                  {typed(edgev1alpha1.PropertyBoolean), []edgev1alpha1.ServiceInput{input(nil, "COLOR", edgev1alpha1.Value{Type: edgev1alpha1.ValueBoolean, Boolean: true})}, "map[COLOR:true]"},
		"no key of a ConfigMap": {[]edgev1alpha1.Variable{{Name: "a/b", DefaultValue: &red}}, nil, ReasonInputInvalid},
	} {
		s := &edgev1alpha1.EdgeServiceSpec{URL: "web", Version: "1.0.0", Arch: "amd64", UserInput: c.variables}
		org := "shop"
		if name == "of this org" {
			org = "tools"
		}
		got, err := Variables(org, s, "shop", c.inputs)
		text := fmt.Sprint(got)
		if err != nil {
			text = reason(err)
			if strings.Contains(err.Error(), "1.5") {
				t.Errorf("%s: the error says the value: %v", name, err)
			}
		}
		if text != c.want {
			t.Errorf("%s: got %s (%v), want %s", name, text, err, c.want)
		}
	}
}
