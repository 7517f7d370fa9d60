// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterhub/clusterhub/artifacts"
)

// kustomized returns what kustomize builds of a resource and components.
func kustomized(t *testing.T, resource string, components ...string) []*unstructured.Unstructured {
	t.Helper()
	user, err := json.Marshal(map[string]any{"resources": prefixed(resource), "components": prefixed(components...)})
	if err != nil {
		t.Fatal(err)
	}
	return kustomizedFile(t, "", user)
}

// kustomizedFile returns what kustomize builds of a user's kustomization, with the folder of the manifests in another one beside it.
func kustomizedFile(t *testing.T, folder string, kustomization []byte) []*unstructured.Unstructured {
	t.Helper()
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(artifacts.Deploy, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(artifacts.Deploy, name)
		if err != nil {
			return err
		}
		return files.WriteFile(path.Join(folder, name), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteFile("user/kustomization.yaml", kustomization); err != nil {
		t.Fatal(err)
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "user")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range all.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func prefixed(names ...string) (paths []string) {
	for _, name := range names {
		if name != "" {
			paths = append(paths, path.Join("..", root, name))
		}
	}
	return paths
}

func parsed(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// compare reports the differences between two sets of objects.
func compare(t *testing.T, what string, got, want []*unstructured.Unstructured) {
	t.Helper()
	texts := func(objects []*unstructured.Unstructured) map[string]string {
		all := map[string]string{}
		for _, o := range objects {
			text, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := all[identity(o)]; twice {
				t.Errorf("%s: %s is there twice", what, identity(o))
			}
			all[identity(o)] = string(text)
		}
		return all
	}
	has, wants := texts(got), texts(want)
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if has[name] != wants[name] {
			t.Errorf("%s: %s is\n%s\nnot\n%s", what, name, has[name], wants[name])
		}
	}
	for name := range has {
		if _, ok := wants[name]; !ok {
			t.Errorf("%s: there should be no %s", what, name)
		}
	}
}

// subsets returns the sets with no, one and two names, and with all names.
func subsets(names []string) [][]string {
	all := [][]string{nil, names}
	for i, name := range names {
		all = append(all, []string{name})
		for _, other := range names[i+1:] {
			all = append(all, []string{name, other})
		}
	}
	return all
}

// TestHub_MatchesKustomize: users of kustomize get what our programs deploy, whatever components are combined: each pair is tried, and all of
// them. On an external etcd, each is tried by itself and all together, since combinations do not depend on the base.
func TestHub_MatchesKustomize(t *testing.T) {
	same := func(folder string, hub Hub) {
		compare(t, strings.Join(append([]string{folder}, hub.Components...), "+"), objectsOf(t, hub), kustomized(t, folder, hub.Components...))
	}
	some := subsets(Components())
	for _, components := range some {
		same("base", Hub{Components: components})
		if len(components) < 2 || len(components) == len(Components()) {
			same("external-etcd", Hub{ExternalEtcd: true, Components: components})
		}
	}
	if len(some) < 20 {
		t.Errorf("there are only %d combinations", len(some))
	}
}

// TestFolders_MatchKustomize lists the folders that are not compared here, since only kustomize builds them.
func TestFolders_MatchKustomize(t *testing.T) {
	var whole []string
	for _, folder := range folders() {
		if isComponent(folder) {
			continue
		}
		whole = append(whole, folder)
		objects, err := build(nil, folder)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, folder, objects, kustomized(t, folder))
	}
	if want := []string{"agent", "agent-namespace", "agent-upgrade", "agent-works", "base", "cluster-provider", "external-etcd", "klusterlet", "klusterlet-detached", "operator",
		"operator-in-hub"}; !slices.Equal(whole, want) {
		t.Errorf("artifacts/deploy has %q beside components, and this test knows %q", whole, want)
	}
	compare(t, "bootstrap", Bootstrap(false), kustomized(t, "", "bootstrap"))
	compare(t, "bootstrap of upstream's agents", Bootstrap(true), kustomized(t, "", "bootstrap", "upstream-agents"))
}

func TestPatch_RejectsUnsupported(t *testing.T) {
	objects := parsed(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
	for name, p := range map[string]patch{
		"matches nothing":  {Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"},
		"of two objects":   {Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"},
		"is no object":     {Patch: "- op: remove\n  path: /data\n"},
		"is not there":     {Path: "patch.yaml"},
		"is there nowhere": {},
	} {
		if _, err := p.apply(objects, "base"); err == nil {
			t.Errorf("a patch that %s is taken", name)
		}
	}
	changed, err := (patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"}).apply(objects, "base")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "a patch of one", changed, parsed(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"))
}
