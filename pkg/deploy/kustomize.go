// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	strictyaml "sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/artifacts"
)

const (
	root          = "deploy"
	kindComponent = "Component"
)

// kustomization has the fields of a kustomization.yaml that artifacts/deploy uses. Kustomize itself is used in tests only, which compare its output
// with what is built here.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Patches    []patch  `json:"patches"`
}

// patch is a strategic merge patch, in a file or in the kustomization itself. Without a target it applies to the object that it names.
type patch struct {
	Path   string `json:"path"`
	Patch  string `json:"patch"`
	Target *struct {
		LabelSelector string `json:"labelSelector"`
	} `json:"target"`
}

func read(folder string) (k kustomization, err error) {
	data, err := fs.ReadFile(artifacts.Deploy, path.Join(root, folder, "kustomization.yaml"))
	if err != nil {
		return k, err
	}
	err = strictyaml.UnmarshalStrict(data, &k)
	return k, err
}

// built caches the objects of folders, by their names. Manifests are compiled into the program, and hub-operator needs them in each reconcile of a
// Klusterlet: parsing them costs a hundred times as much as copying them.
var built sync.Map

// build adds the objects of a folder to the objects, and applies its patches to all of them. The objects belong to the caller.
func build(objects []*unstructured.Unstructured, folder string) ([]*unstructured.Unstructured, error) {
	if len(objects) > 0 {
		return add(objects, folder)
	}
	known, ok := built.Load(folder)
	if !ok {
		made, err := add(nil, folder)
		if err != nil {
			return nil, err
		}
		known, _ = built.LoadOrStore(folder, made)
	}
	for _, o := range known.([]*unstructured.Unstructured) {
		objects = append(objects, o.DeepCopy())
	}
	return objects, nil
}

func add(objects []*unstructured.Unstructured, folder string) ([]*unstructured.Unstructured, error) {
	k, err := read(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range k.Resources {
		var more []*unstructured.Unstructured
		if strings.HasSuffix(name, ".yaml") {
			more, err = parseFile(folder, name)
		} else {
			more, err = build(nil, path.Join(folder, name))
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	for _, p := range k.Patches {
		objects, err = p.apply(objects, folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	return objects, nil
}

func (p patch) apply(objects []*unstructured.Unstructured, folder string) ([]*unstructured.Unstructured, error) {
	changes, err := parse([]byte(p.Patch))
	if p.Path != "" {
		changes, err = parseFile(folder, p.Path)
	}
	if err != nil {
		return nil, err
	}
	if len(changes) != 1 {
		return nil, fmt.Errorf("a patch must change one object, or those of one selector, not %d", len(changes))
	}
	change, found := changes[0], false
	matches := func(o *unstructured.Unstructured) bool { return identity(o) == identity(change) }
	if p.Target != nil {
		selector, err := labels.Parse(p.Target.LabelSelector)
		if err != nil {
			return nil, err
		}
		matches = func(o *unstructured.Unstructured) bool { return selector.Matches(labels.Set(o.GetLabels())) }
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if !matches(o) {
			all = append(all, o)
			continue
		}
		found = true
		if change.Object["$patch"] == "delete" {
			continue
		}
		typed, err := scheme.Scheme.New(o.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		o.Object, err = strategicpatch.StrategicMergeMapPatch(o.Object, change.Object, typed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", identity(o), err)
		}
		all = append(all, o)
	}
	if !found {
		return nil, fmt.Errorf("no object to patch matches %s", identity(change))
	}
	return all, nil
}

func identity(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
}

func parseFile(folder, name string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(artifacts.Deploy, path.Join(root, folder, name))
	if err != nil {
		return nil, err
	}
	objects, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", folder, name, err)
	}
	return objects, nil
}

func parse(manifests []byte) (objects []*unstructured.Unstructured, err error) {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		// A document of comments only.
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// Components returns the optional components of a hub.
func Components() []string {
	return slices.DeleteFunc(folders(), func(folder string) bool { return !isComponent(folder) })
}

func isComponent(folder string) bool {
	k, err := read(folder)
	return err == nil && k.Kind == kindComponent
}

func folders() (names []string) {
	entries, err := fs.ReadDir(artifacts.Deploy, root)
	if err != nil {
		panic(err) // the manifests are compiled into this program
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
