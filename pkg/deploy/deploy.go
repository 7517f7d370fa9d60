// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy has the objects to deploy: the servers of a hub, the rights of bootstrap tokens on it, a provider of clusters, and hub-agent on a
// managed cluster. All of them come from the manifests in artifacts/deploy, which kustomize builds as well.
package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changes are changes of the manifests.
type Changes struct {
	// Names maps names of namespaces and objects in the manifests to new names. References are changed, too, including those in flags and in
	// policies.
	Names map[string]string
	// Images maps names of images in the manifests without their tags, such as "clusterhub/hub-apiserver", to complete names of images.
	Images map[string]string
}

// word matches a name, or a part of one that contains colons or dots.
var word = regexp.MustCompile(`[A-Za-z0-9-]+`)

// apply makes the changes.
func (c Changes) apply(objects []*unstructured.Unstructured) error {
	has, names := map[string]bool{}, slices.Collect(maps.Keys(c.Names))
	for _, o := range objects {
		has[o.GetName()], has[o.GetNamespace()] = true, true
		replace(o.Object, "", func(key, text string) string {
			if key == "image" {
				has[withoutTag(text)] = true
				return cmp.Or(c.Images[withoutTag(text)], text)
			}
			if to, ok := c.Names[text]; ok {
				return to
			}
			// Descriptions and expressions are long, few contain a name, and hub-operator does this in each reconcile of a ClusterManager.
			if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) }) {
				return text
			}
			return word.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(c.Names[name], name) })
		})
	}
	for _, from := range slices.Concat(slices.Sorted(maps.Keys(c.Names)), slices.Sorted(maps.Keys(c.Images))) {
		if !has[from] {
			return fmt.Errorf("no object or image with the name %s to rename", from)
		}
	}
	return nil
}

// replace changes all strings in a value, each with the key above it.
func replace(value any, key string, change func(key, text string) string) any {
	switch v := value.(type) {
	case string:
		return change(key, v)
	case []any:
		for i := range v {
			v[i] = replace(v[i], key, change)
		}
	case map[string]any:
		for k := range v {
			v[k] = replace(v[k], k, change)
		}
	}
	return value
}

func withoutTag(image string) string {
	name := strings.LastIndex(image, "/") + 1
	repository, _, _ := strings.Cut(image[name:], ":")
	return image[:name] + repository
}

// inOrder moves pods after what they need, and APIServices after the pods that serve them. All else retains the order of the manifests, where
// namespaces come first, and components last.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	late := []string{"Deployment", "APIService"}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(late, a.GetKind()) - slices.Index(late, b.GetKind())
	})
	return objects
}

// ofPods lists the kinds of objects that pods consist of or are reached by.
var ofPods = []string{
	"Deployment", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceQuota", "Secret", "Service",
}

// split separates objects for pods that do not run on the cluster that they serve. The served cluster has the objects for its API server:
// ServiceAccounts, RBAC, policies, flow control, APIServices. The management cluster runs the pods. It gets the kinds ofPods, and those in more, in
// one namespace; if namespace is empty, in the one of the manifests. Namespaces and ServiceAccounts are created on both: pods have them, and rights
// are granted to them.
func split(objects []*unstructured.Unstructured, namespace string, more ...string) (served, management []*unstructured.Unstructured) {
	hasPods := map[string]bool{}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			hasPods[o.GetNamespace()] = true
		}
	}
	for _, o := range objects {
		// Rights in other namespaces are rights on the served cluster.
		moves := slices.Contains(ofPods, o.GetKind()) || slices.Contains(more, o.GetKind()) && hasPods[o.GetNamespace()]
		if !moves {
			served = append(served, o)
		}
		if moves || o.GetKind() == "Namespace" && hasPods[o.GetName()] || o.GetKind() == "ServiceAccount" && hasPods[o.GetNamespace()] {
			management = append(management, placed(o.DeepCopy(), namespace))
		}
	}
	return served, management
}

// placed moves an object, and the subjects of a binding, to a namespace.
func placed(o *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	if namespace == "" {
		return o
	}
	if o.GetKind() == "Namespace" {
		o.SetName(namespace)
		return o
	}
	o.SetNamespace(namespace)
	if subjects, ok := o.Object["subjects"].([]any); ok {
		for _, subject := range subjects {
			if account, ok := subject.(map[string]any); ok && account["kind"] == "ServiceAccount" {
				account["namespace"] = namespace
			}
		}
	}
	return o
}
