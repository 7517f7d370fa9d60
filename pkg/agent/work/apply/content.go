// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replacement returns an object with the content of want, and the metadata and status of have. Labels and annotations are added, never removed: other
// clients may rely on theirs.
func replacement(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	next := want.DeepCopy()
	if _, aggregated := want.Object["aggregationRule"]; aggregated {
		next.Object["rules"] = have.Object["rules"] // set by a controller
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

// ownable removes fields from a manifest that the server or its controllers compute from others. A Secret's stringData would stay in data after it is
// removed from the manifest, since no manager owns it there; the rules of an aggregating ClusterRole are set by a controller.
func ownable(manifest *unstructured.Unstructured) {
	switch manifest.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Secret"}:
		plain, ok := manifest.Object["stringData"].(map[string]any)
		if !ok {
			return
		}
		data, ok := manifest.Object["data"].(map[string]any)
		if manifest.Object["data"] == nil {
			data, ok = map[string]any{}, true
		}
		if !ok {
			return // the server rejects it
		}
		for key, value := range plain {
			text, ok := value.(string)
			if !ok {
				return // the server rejects it
			}
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		manifest.Object["data"] = data
		delete(manifest.Object, "stringData")
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		if manifest.Object["aggregationRule"] != nil {
			delete(manifest.Object, "rules")
		}
	}
}

// dropNulls removes the null creation times that Go programs write at any depth: if applied, they would count as a change each time.
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

// same reports whether a write would change nothing, without a request to the server. It may return false for an unchanged object.
func same(next, have *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(next.Object, have.Object)
}

// changing are the fields of metadata that change with each write, whatever it changes.
var changing = []string{"resourceVersion", "generation", "managedFields"}

// content returns all of an object that a client may set: not what the server maintains, and not the status.
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

// sameContent reports whether two objects are equal in all that a work may set, apart from the owner references, which each work has for itself.
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

// Fingerprint returns a hash of all that a client may set in an object. It is only comparable within one process.
func Fingerprint(object *unstructured.Unstructured) string {
	data, err := json.Marshal(content(object))
	if err != nil {
		return "" // differs from all others: the object is written again
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
