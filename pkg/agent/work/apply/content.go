// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kept are the fields, by kind, that others fill in after an object was made, and that cannot be taken away again, or should not be: what a
// manifest does not say of them stays as it is. The star stands for the items of a list that have the same name.
var kept = map[schema.GroupKind][]string{
	{Kind: "PersistentVolumeClaim"}: {"spec"},
	{Kind: "PersistentVolume"}:      {"spec.claimRef"},
	{Kind: "Pod"}:                   {"spec"},
	{Kind: "ServiceAccount"}:        {"secrets", "imagePullSecrets"},
	{Kind: "Namespace"}:             {"spec"},
	{Group: "batch", Kind: "Job"}:   {"spec.selector", "spec.template"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"webhooks.*.clientConfig.caBundle"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"webhooks.*.clientConfig.caBundle"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               {"spec.conversion.webhook.clientConfig.caBundle"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {"spec.caBundle"},
}

// replace is an object whose content is the wanted one, with the metadata and the status of what is there. Labels and annotations are
// added, never taken away: others may rely on theirs.
func replace(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	next := want.DeepCopy()
	for _, path := range kept[have.GroupVersionKind().GroupKind()] {
		keep(next.Object, have.Object, strings.Split(path, "."))
	}
	if _, aggregated := want.Object["aggregationRule"]; aggregated {
		next.Object["rules"] = have.Object["rules"] // a controller fills them in
	}
	if status, ok := have.Object["status"]; ok {
		next.Object["status"] = status
	}
	metadata := have.DeepCopy().Object["metadata"]
	next.Object["metadata"] = metadata
	next.SetLabels(plus(have.GetLabels(), want.GetLabels()))
	next.SetAnnotations(plus(have.GetAnnotations(), want.GetAnnotations()))
	next.SetOwnerReferences(want.GetOwnerReferences())
	return next
}

func plus(have, more map[string]string) map[string]string {
	if len(have) == 0 && len(more) == 0 {
		return nil
	}
	sum := map[string]string{}
	maps.Copy(sum, have)
	maps.Copy(sum, more)
	return sum
}

// keep copies what is at a path in one object into another one, as far as that says nothing of it.
func keep(want, have any, path []string) {
	if path[0] == "*" {
		wanted, _ := want.([]any)
		there, _ := have.([]any)
		for _, item := range wanted {
			if old := named(there, nameOf(item)); old != nil {
				keep(item, old, path[1:])
			}
		}
		return
	}
	into, ok := want.(map[string]any)
	from, fromOK := have.(map[string]any)
	if !ok || !fromOK || from[path[0]] == nil {
		return
	}
	if len(path) == 1 {
		into[path[0]] = merged(into[path[0]], from[path[0]])
		return
	}
	keep(into[path[0]], from[path[0]], path[1:])
}

// nameOf is the name of an item of a list, or empty.
func nameOf(item any) string {
	object, _ := item.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// named is the item of a name, or nil.
func named(list []any, name string) any {
	for _, item := range list {
		if name != "" && nameOf(item) == name {
			return item
		}
	}
	return nil
}

// merged is what is wanted, with what is there in the places that it says nothing of.
func merged(want, have any) any {
	switch have := have.(type) {
	case map[string]any:
		want, ok := want.(map[string]any)
		if !ok {
			break
		}
		for key, value := range have {
			want[key] = merged(want[key], value)
		}
		return want
	case []any:
		if want, ok := want.([]any); ok {
			return mergedList(want, have)
		}
	}
	if want == nil {
		return have
	}
	return want
}

// mergedList merges the items of the same name, and keeps those that others have added. Where items have no names, the wanted list is
// all that is wanted.
func mergedList(want, have []any) []any {
	for i, item := range want {
		if nameOf(item) == "" {
			return want
		}
		if old := named(have, nameOf(item)); old != nil {
			want[i] = merged(item, old)
		}
	}
	for _, old := range have {
		if nameOf(old) != "" && named(want, nameOf(old)) == nil {
			want = append(want, old)
		}
	}
	return want
}

// dropNulls removes the null creation times that Go programs write at any depth: applied, they would be taken for a change each time.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		if created, ok := value["creationTimestamp"]; ok && created == nil {
			delete(value, "creationTimestamp")
		}
		for _, below := range value {
			dropNulls(below)
		}
	case []any:
		for _, below := range value {
			dropNulls(below)
		}
	}
}

// same says that a write would change nothing, without asking the server. It is false more often than it need be.
func same(next, have *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(next.Object, have.Object)
}

// changing are the fields of metadata that change with each write, whatever it is about.
var changing = []string{"resourceVersion", "generation", "managedFields"}

// content is all that somebody may want of an object: not what the server counts, and not what a controller reports.
func content(object *unstructured.Unstructured) map[string]any {
	all := maps.Clone(object.Object)
	delete(all, "status")
	if metadata, ok := all["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range changing {
			delete(metadata, field)
		}
		all["metadata"] = metadata
	}
	return all
}

// sameContent compares what two works may want of an object. Each has its own owner reference.
func sameContent(a, b *unstructured.Unstructured) bool {
	of := func(object *unstructured.Unstructured) map[string]any {
		all := content(object)
		if metadata, ok := all["metadata"].(map[string]any); ok {
			delete(metadata, "ownerReferences")
		}
		return all
	}
	return equality.Semantic.DeepEqual(of(a), of(b))
}

// Fingerprint is the same as long as nobody changes what somebody may want of an object. It is for the memory of one process.
func Fingerprint(object *unstructured.Unstructured) string {
	data, err := json.Marshal(content(object))
	if err != nil {
		return "" // like no other: it is written again
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
