// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds tries the CustomResourceDefinitions of artifacts/deploy/operator on a real kube-apiserver: what a schema says, and what its
// rules cost, only a server knows.
package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/artifacts"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

const (
	clusterManagers = "clustermanagers"
	klusterlets     = "klusterlets"
)

var (
	kinds   = map[string]string{clusterManagers: "ClusterManager", klusterlets: "Klusterlet"}
	crdKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	serving struct {
		once sync.Once
		err  error
	}
)

// crd is the CustomResourceDefinition as it is shipped.
func crd(t testing.TB, resource string) *unstructured.Unstructured {
	t.Helper()
	data, err := artifacts.Deploy.ReadFile("deploy/operator/" + operatorv1.GroupName + "_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return worktest.Parse(string(data))
}

// server serves both kinds.
func server(t testing.TB) dynamic.Interface {
	t.Helper()
	client := worktest.Client(t)
	serving.once.Do(func() {
		for resource := range kinds {
			_, err := client.Resource(crdKind).Create(t.Context(), crd(t, resource), metav1.CreateOptions{})
			serving.err = errors.Join(serving.err, err)
		}
	})
	if serving.err != nil {
		t.Fatal(serving.err)
	}
	for resource := range kinds {
		worktest.Eventually(t, resource+" are served", func() bool {
			_, err := of(client, resource).List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
	return client
}

func of(client dynamic.Interface, resource string) dynamic.ResourceInterface {
	return client.Resource(operatorv1.SchemeGroupVersion.WithResource(resource))
}

// object returns an object with a spec in YAML, which may be empty.
func object(t testing.TB, resource, name, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(operatorv1.SchemeGroupVersion.WithKind(kinds[resource]))
	o.SetName(name)
	if spec != "" {
		var parsed any
		if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
			t.Fatal(err)
		}
		o.Object["spec"] = parsed
	}
	return o
}

const manager = "test"

// applied makes an object, which is removed at the end of the test.
func applied(t testing.TB, client dynamic.Interface, resource, name, spec string) *unstructured.Unstructured {
	t.Helper()
	made, err := of(client, resource).Apply(t.Context(), name, object(t, resource, name, spec), metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := of(client, resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return made
}

// refused wants an answer that says what is invalid. An empty text wants none.
func refused(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case want == "":
		if err != nil {
			t.Errorf("it is refused: %v", err)
		}
	case !apierrors.IsInvalid(err):
		t.Errorf("got %v, want 422 with %q", err, want)
	case !strings.Contains(err.Error(), want):
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// change is a write of one field of an object that was applied as a text says. Without a value the field is removed.
type change struct {
	client         dynamic.Interface
	resource, name string
	spec           string
	path           []string
	value          any
}

func (c change) in(content map[string]any) error {
	if c.value == nil {
		unstructured.RemoveNestedField(content, c.path...)
		return nil
	}
	return unstructured.SetNestedField(content, c.value, c.path...)
}

// writes are all kinds of them.
var writes = map[string]func(t *testing.T, c change) error{
	"PUT": func(t *testing.T, c change) error {
		o, err := of(c.client, c.resource).Get(t.Context(), c.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := c.in(o.Object); err != nil {
			return err
		}
		_, err = of(c.client, c.resource).Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	},
	"JSON patch": func(t *testing.T, c change) error {
		op := map[string]any{"op": "add", "path": "/" + strings.Join(c.path, "/"), "value": c.value}
		if c.value == nil {
			op = map[string]any{"op": "remove", "path": op["path"]}
		}
		return c.patch(t, types.JSONPatchType, []any{op}, metav1.PatchOptions{})
	},
	"merge patch": func(t *testing.T, c change) error {
		return c.patch(t, types.MergePatchType, c.nested(), metav1.PatchOptions{})
	},
	"apply": func(t *testing.T, c change) error {
		o := object(t, c.resource, c.name, c.spec)
		if err := c.in(o.Object); err != nil {
			return err
		}
		_, err := of(c.client, c.resource).Apply(t.Context(), c.name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	},
	"apply by another": func(t *testing.T, c change) error {
		o := object(t, c.resource, c.name, "")
		for key, value := range c.nested() {
			o.Object[key] = value
		}
		_, err := of(c.client, c.resource).Apply(t.Context(), c.name, o, metav1.ApplyOptions{FieldManager: "another", Force: true})
		return err
	},
}

func (c change) nested() map[string]any {
	content := map[string]any{c.path[len(c.path)-1]: c.value}
	for i := len(c.path) - 2; i >= 0; i-- {
		content = map[string]any{c.path[i]: content}
	}
	return content
}

func (c change) patch(t *testing.T, kind types.PatchType, content any, options metav1.PatchOptions, subresources ...string) error {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = of(c.client, c.resource).Patch(t.Context(), c.name, kind, data, options, subresources...)
	return err
}

// eachWrite makes an object and changes it, by each kind of write.
func eachWrite(t *testing.T, client dynamic.Interface, c change, want string) {
	t.Helper()
	n := 0
	for how, write := range writes {
		if how == "apply by another" && c.value == nil {
			continue // who does not own a field cannot remove it
		}
		n++
		t.Run(how, func(t *testing.T) {
			c.client, c.name = client, fmt.Sprintf("x%d", n)
			before := applied(t, client, c.resource, c.name, c.spec)
			refused(t, write(t, c), want)
			after, err := of(client, c.resource).Get(t.Context(), c.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want != "" && (after.GetGeneration() != before.GetGeneration() || text(after.Object["spec"]) != text(before.Object["spec"])) {
				t.Errorf("it was refused and done:\n%s\n%s", text(before.Object["spec"]), text(after.Object["spec"]))
			}
		})
	}
}

func text(content any) string {
	data, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
