// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Object is an object of an archive.
type Object struct {
	Group, Kind, Name string
	// Namespace is the namespace that the archive names, or empty.
	Namespace string
	Scope     Scope
}

func (o Object) String() string {
	kind := o.Kind
	if o.Group != "" {
		kind += "." + o.Group
	}
	return kind + " " + o.Name
}

// Contents is the content of an archive.
type Contents struct {
	// Objects are in the order of the archive. They do not include Namespaces, which are not delivered.
	Objects []Object
	// Namespaces are all namespaces that the archive names, by metadata.namespace or as an object of kind Namespace, in alphabetical order.
	Namespaces []string
	// MakesNamespaces means that there are objects of kind Namespace. Their labels and annotations are not delivered either.
	MakesNamespaces bool
	// More means that the lists of objects and namespaces are incomplete. It is false for an archive that was read; stored contents may have been
	// truncated.
	More bool
	// Ignored are the paths of files that contain no manifests, judged by their name.
	Ignored []string
}

// Embedded returns the embedded namespace: the only one that the archive names. It is empty if the archive names none, and not certain if it names
// several.
func (c *Contents) Embedded() (namespace string, certain bool) {
	switch len(c.Namespaces) {
	case 0:
		return "", true
	case 1:
		return c.Namespaces[0], true
	}
	return "", false
}

// ClusterScoped returns the objects that are known to be cluster-scoped.
func (c *Contents) ClusterScoped() []Object {
	var list []Object
	for _, o := range c.Objects {
		if o.Scope == Cluster {
			list = append(list, o)
		}
	}
	return list
}

// Archive is an archive that was read.
type Archive struct {
	Contents Contents
	// manifests and files have one element for each of Contents.Objects.
	manifests []map[string]any
	files     []string
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// byteOrder is the byte order mark, with which editors on Windows begin a file.
var byteOrder = []byte("\ufeff")

// add reads a file, and subtracts its size from the budget.
func (a *Archive) add(f *file, left *budget) error {
	for _, doc := range documents(bytes.TrimPrefix(f.data, byteOrder)) {
		content, err := parse(doc, left)
		if err == nil && content != nil {
			err = a.object(f, content, true)
		}
		if err != nil {
			return fmt.Errorf("the file %s in the archive %w", short(f.name), err)
		}
	}
	return nil
}

// object adds an object, or each object of a list.
func (a *Archive) object(f *file, content map[string]any, lists bool) error {
	u := unstructured.Unstructured{Object: content}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil || gv.Version == "" || u.GetKind() == "" {
		return errors.New("has a document that is not an object of Kubernetes: apiVersion and kind must be strings such as apps/v1 and Deployment")
	}
	// Some readers treat any object with items as a list, whatever its kind: namespaces in its items would not be found.
	if value, there := content["items"]; there {
		items, is := value.([]any)
		if !is || !lists || !strings.HasSuffix(u.GetKind(), "List") {
			return errors.New("has an object with items: only a list can have them, its kind must end in List, and lists cannot contain lists")
		}
		for _, item := range items {
			content, is := item.(map[string]any)
			if !is {
				return errors.New("has a list with an item that is not an object")
			}
			if err := a.object(f, content, false); err != nil {
				return err
			}
		}
		return nil
	}
	if len(a.manifests) == MaxObjects {
		return fmt.Errorf("is one with which the archive has more than %d objects: divide it among several services", MaxObjects)
	}
	o := Object{Group: gv.Group, Kind: u.GetKind(), Name: u.GetName(), Namespace: u.GetNamespace()}
	if err := named(content, &o); err != nil {
		return err
	}
	a.Contents.Objects = append(a.Contents.Objects, o)
	a.manifests = append(a.manifests, content)
	a.files = append(a.files, f.name)
	return nil
}

// named checks the names of an object. They are shown to users, so their characters are checked before any of them is in a message.
func named(content map[string]any, o *Object) error {
	for _, text := range []string{o.Group, o.Kind, o.Name} {
		if len(text) > 253 || len(o.Kind) > 63 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '%' }) {
			return errors.New("has an object whose group, kind or name is not a valid name in Kubernetes")
		}
	}
	metadata, is := content["metadata"].(map[string]any)
	if !is || o.Name == "" {
		return fmt.Errorf("has a %s without metadata.name: set a name for each object, generateName is not supported", o.Kind)
	}
	namespace, there := metadata["namespace"]
	if _, text := namespace.(string); there && !text && namespace != nil {
		return fmt.Errorf("has %s, whose metadata.namespace is not a string: quote it", o)
	}
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return fmt.Errorf("has %s in the namespace %s, which is not a valid name of a namespace: use small letters, digits and '-'", o, short(o.Namespace))
	}
	return nil
}

// finish checks all objects together.
func (a *Archive) finish(ignored []string) error {
	slices.Sort(ignored)
	a.Contents.Ignored = ignored
	defined, err := a.definitions()
	if err != nil {
		return err
	}
	namespaces := map[string]bool{}
	kept := 0
	for i, o := range a.Contents.Objects {
		kind := schema.GroupKind{Group: o.Group, Kind: o.Kind}
		if kind == namespaceKind {
			if len(validation.IsDNS1123Label(o.Name)) > 0 {
				return fmt.Errorf("the file %s in the archive has a Namespace with the name %s: use small letters, digits and '-'", short(a.files[i]), short(o.Name))
			}
			namespaces[o.Name], a.Contents.MakesNamespaces = true, true
			continue
		}
		o.Scope = scopeOf(kind, o.Namespace, defined)
		if o.Scope == Cluster {
			o.Namespace = ""
		} else if o.Namespace != "" {
			namespaces[o.Namespace] = true
		}
		a.Contents.Objects[kept], a.manifests[kept], a.files[kept] = o, a.manifests[i], a.files[i]
		kept++
	}
	a.Contents.Objects, a.manifests, a.files = a.Contents.Objects[:kept], a.manifests[:kept], a.files[:kept]
	for namespace := range namespaces {
		a.Contents.Namespaces = append(a.Contents.Namespaces, namespace)
	}
	slices.Sort(a.Contents.Namespaces)
	if kept == 0 {
		return errors.New("the archive has no objects to deliver: put manifests in it, in files that end in .yaml, .yml or .json")
	}
	if err := a.unique(); err != nil {
		return err
	}
	// An archive that cannot be rewritten is rejected now, and not when it is delivered.
	_, err = a.Deliver("default")
	return err
}

// unique rejects duplicate objects: all are delivered to one namespace, even if they name different ones.
func (a *Archive) unique() error {
	seen := make(map[Object]int, len(a.Contents.Objects))
	for i, o := range a.Contents.Objects {
		key := Object{Group: o.Group, Kind: o.Kind, Name: o.Name}
		if first, twice := seen[key]; twice {
			return fmt.Errorf("the archive has %s twice, in %s and in %s: all objects of a service are deployed to one namespace, so each needs a unique name", o, short(a.files[first]), short(a.files[i]))
		}
		seen[key] = i
	}
	return nil
}

// definitions returns the kinds that the archive itself defines.
func (a *Archive) definitions() (map[schema.GroupKind]Scope, error) {
	defined := map[schema.GroupKind]Scope{}
	for i, o := range a.Contents.Objects {
		if o.Group != "apiextensions.k8s.io" || o.Kind != "CustomResourceDefinition" {
			continue
		}
		spec, _ := a.manifests[i]["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names["kind"].(string)
		scope, _ := spec["scope"].(string)
		if kind == "" || (Scope(scope) != Namespaced && Scope(scope) != Cluster) {
			return nil, fmt.Errorf("the file %s in the archive has %s, whose spec.names.kind is missing, or spec.scope is neither Namespaced nor Cluster", short(a.files[i]), o)
		}
		defined[schema.GroupKind{Group: group, Kind: kind}] = Scope(scope)
	}
	return defined, nil
}
