// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	applied     = schema.GroupVersionResource{Group: worktest.Group, Version: "v1", Resource: "appliedmanifestworks"}
)

// world is a namespace of a real cluster, with works that apply objects to it.
type world struct {
	*testing.T
	client    dynamic.Interface
	namespace string
	made      []Target
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return &world{T: t, client: worktest.Client(t), namespace: worktest.Namespace(t)}
}

// work returns the Applier of a new work, which has an AppliedManifestWork.
func (w *world) work(name string) *Applier {
	w.Helper()
	object := worktest.Parse("{apiVersion: " + worktest.Group + "/v1, kind: AppliedManifestWork}")
	object.SetName("hub-" + w.namespace + "-" + name)
	owner, err := w.client.Resource(applied).Create(w.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return &Applier{Client: w.client, Owner: Owner{Name: owner.GetName(), UID: owner.GetUID()},
		Rival: func(_ context.Context, ref metav1.OwnerReference) (string, error) {
			_, rival, _ := strings.Cut(strings.TrimPrefix(ref.Name, "hub-"), w.namespace+"-")
			return rival, nil
		},
		Making: func(_ context.Context, t Target) error { w.made = append(w.made, t); return nil },
	}
}

func (w *world) manifest(resource schema.GroupVersionResource, strategy UpdateStrategy, text string) Manifest {
	object := worktest.Parse(text)
	return Manifest{Object: object, Target: Target{resource, w.namespace, object.GetName()}, Strategy: strategy}
}

func (w *world) configMap(strategy UpdateStrategy, data string) Manifest {
	return w.manifest(configMaps, strategy, "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: "+data+"}")
}

func (w *world) deployment(strategy UpdateStrategy, replicas int) Manifest {
	return w.manifest(deployments, strategy, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, creationTimestamp: null}
spec:
  replicas: %d
  selector: {matchLabels: {app: d}}
  template: {metadata: {creationTimestamp: null, labels: {app: d}}, spec: {containers: [{name: c, image: i}]}}
`, replicas))
}

// apply applies a manifest, and fails the test on an error.
func (w *world) apply(a *Applier, m Manifest) *unstructured.Unstructured {
	w.Helper()
	have, err := a.Apply(w.Context(), m, "")
	if err != nil {
		w.Fatal(err)
	}
	return have
}

// get returns the object, or nil if it does not exist.
func (w *world) get(t Target) *unstructured.Unstructured {
	w.Helper()
	have, err := Get(w.Context(), w.client, t)
	if err != nil {
		w.Fatal(err)
	}
	return have
}

// change updates an object as another client. It retries on conflict: the garbage collector writes to objects whose owners do not exist.
func (w *world) change(t Target, how func(*unstructured.Unstructured)) {
	w.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have := w.get(t)
		how(have)
		_, err := w.client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Update(w.Context(), have, metav1.UpdateOptions{FieldManager: "somebody"})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) expect(have *unstructured.Unstructured, want any, path ...string) {
	w.Helper()
	got, _, err := unstructured.NestedFieldNoCopy(have.Object, path...)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s is %v, want %v (%v)", strings.Join(path, "."), got, want, err)
	}
}
