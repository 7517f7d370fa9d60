// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy has what is deployed: the servers of a hub, the rights of bootstrap tokens on it, a provider of clusters, and
// hub-agent on a managed cluster. All of it comes from the manifests in artifacts/deploy, which kustomize builds as well.
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

// Changes are what is to be otherwise than in the manifests.
type Changes struct {
	// Names are names of namespaces and objects, by those in the manifests. A name is changed wherever it is referred to, also in
	// flags and in policies.
	Names map[string]string
	// Images are whole names of images, by those in the manifests without the tag: "clusterhub/hub-apiserver".
	Images map[string]string
}

// word is a name, or a part of one that has colons or dots in it.
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
			// Descriptions and expressions are long, few have a name in them, and hub-operator does this at each look at a ClusterManager.
			if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) }) {
				return text
			}
			return word.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(c.Names[name], name) })
		})
	}
	for _, from := range slices.Concat(slices.Sorted(maps.Keys(c.Names)), slices.Sorted(maps.Keys(c.Images))) {
		if !has[from] {
			return fmt.Errorf("there is nothing called %s to give another name to", from)
		}
	}
	return nil
}

// replace does so with all texts in a value, each of which stands below a key.
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

// inOrder puts pods behind what they need, and APIServices behind the pods that serve them. All else is in the order of the
// manifests, where namespaces come first, and components last.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	late := []string{"Deployment", "APIService"}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(late, a.GetKind()) - slices.Index(late, b.GetKind())
	})
	return objects
}

// ofPods are the kinds of what pods consist of and are reached by.
var ofPods = []string{
	"Deployment", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceQuota", "Secret", "Service",
}

// split takes apart what is deployed for pods that do not run on the cluster that they serve. The served cluster has to know who
// they are, their rights, and whatever else is told to its API server: ServiceAccounts, RBAC, policies, flow control, APIServices.
// The management cluster runs them. It gets the kinds ofPods, and more if that is said, in one namespace; if that is empty, in the
// one of the manifests. Namespaces and ServiceAccounts are needed on both: pods have them, and rights are given to them.
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

// placed puts an object, and those whom it gives rights to, into a namespace.
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
