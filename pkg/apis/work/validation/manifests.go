// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// enoughFaults is a number of faults above the maximum that is reported.
const enoughFaults = 100

// Canonical brings manifests into the form in which they are stored: every reader finds the same in them, whatever it does with a
// field that is there twice, and the same manifests are the same bytes. Those that are in the old list are in that form already.
func Canonical(manifests, old []work.Manifest) {
	for i := range manifests {
		raw := manifests[i].Raw
		if i < len(old) && bytes.Equal(raw, old[i].Raw) {
			continue
		}
		if object, ok := parse(raw); ok {
			if data, err := json.Marshal(object); err == nil {
				manifests[i].Raw = data
			}
		}
	}
}

func parse(raw []byte) (map[string]any, bool) {
	var object map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object)
	return object, err == nil && object != nil
}

// BadManifests returns the faults of manifests that upstream's webhook rejects, besides their size, which has a flag
// (pkg/admission/work/manifestsize). Unchanged manifests have none.
func BadManifests(manifests, old []work.Manifest, at *field.Path) field.ErrorList {
	if len(manifests) == 0 {
		return field.ErrorList{field.Required(at, "manifests should not be empty")}
	}
	if same(manifests, old) {
		return nil
	}
	if errs := bounds.Count(at, len(manifests), 0, maxManifests); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range manifests {
		object, ok := parse(manifests[i].Raw)
		if !ok {
			continue // it is invalid
		}
		m, metadata := unstructured.Unstructured{Object: object}, at.Index(i).Child("metadata")
		switch {
		case m.GetName() == "":
			errs = append(errs, field.Required(metadata.Child("name"), "name must be set in manifest"))
		case m.GetGenerateName() != "":
			errs = append(errs, field.Forbidden(metadata.Child("generateName"), "generateName must not be set in manifest"))
		default:
			id := fmt.Sprintf("%s/%s with resource type %s.%s", m.GetNamespace(), m.GetName(), m.GetAPIVersion(), m.GetKind())
			if seen[id] {
				errs = append(errs, field.Forbidden(at.Index(i), "duplicate manifest for resource "+id))
			}
			seen[id] = true
		}
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}

func same(a, b []work.Manifest) bool {
	return slices.EqualFunc(a, b, func(x, y work.Manifest) bool { return bytes.Equal(x.Raw, y.Raw) })
}

// validateManifests checks what upstream's schema says of manifests: each is an object with a kind and sound metadata.
func validateManifests(manifests, old []work.Manifest, at *field.Path) field.ErrorList {
	if same(manifests, old) {
		return nil
	}
	var errs field.ErrorList
	for i := range manifests {
		errs = append(errs, validateManifest(&manifests[i], at.Index(i))...)
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}

func validateManifest(m *work.Manifest, at *field.Path) field.ErrorList {
	object, ok := parse(m.Raw)
	if !ok {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must be an object with apiVersion, kind and metadata")}
	}
	errs := validateType(object, at)
	sent, found := object["metadata"]
	if !found {
		return errs // the missing name is reported elsewhere
	}
	metadata := &metav1.ObjectMeta{}
	fields, ok := sent.(map[string]any)
	if !ok {
		return append(errs, field.Invalid(at.Child("metadata"), field.OmitValueType{}, "must be an object"))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, metadata); err != nil {
		return append(errs, field.Invalid(at.Child("metadata"), field.OmitValueType{}, "must be the metadata of an object: "+shortMessage(err.Error())))
	}
	if metadata.Name == "" {
		metadata.Name = "unnamed" // the missing name is reported elsewhere
	}
	return append(errs, apivalidation.ValidateObjectMeta(metadata, metadata.Namespace != "", pathSegment, at.Child("metadata"))...)
}

// pathSegment is the rule for names of kinds that nothing more is known of.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// shortMessage is the beginning of a message that may quote what was sent.
func shortMessage(message string) string { return message[:min(len(message), 1024)] }

func validateType(object map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	version, _ := object["apiVersion"].(string)
	if version == "" {
		errs = append(errs, field.Required(at.Child("apiVersion"), "must not be empty"))
	} else if _, err := schema.ParseGroupVersion(version); err != nil || len(version) > 2*validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), field.OmitValueType{}, "must be a version, such as v1, or a group and a version, such as apps/v1"))
	}
	kind, _ := object["kind"].(string)
	if kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), "must not be empty"))
	} else if len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0 {
		errs = append(errs, field.Invalid(at.Child("kind"), field.OmitValueType{}, "must be letters, digits and '-', a letter first, at most 63"))
	} else if _, list := object["items"].([]any); list && strings.HasSuffix(kind, "List") {
		errs = append(errs, field.Invalid(at.Child("kind"), kind, "must be the kind of one object: write each of the items as a manifest of its own"))
	}
	return errs
}
