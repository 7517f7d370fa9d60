// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignorefields prepares manifests for ServerSideApply: it computes which fields are applied, and a hash to detect changes of the manifest.
package ignorefields

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/jsonpath"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

// Error reports ignoreFields that cannot be evaluated. It has a reason of its own in the status.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether the target is status.ErrIgnoreFields.
func (e *Error) Is(target error) bool { return target == status.ErrIgnoreFields }

// Prepared is a manifest for ServerSideApply.
type Prepared struct {
	// Whole is applied if the object does not exist, and Reduced if it exists, without the fields that are then ignored. Without ignoreFields both
	// are the same.
	Whole, Reduced *unstructured.Unstructured
	// Hash is the hash of Reduced, which is also in an annotation of both. It is "" without ignoreFields.
	Hash string
}

// Unchanged reports whether the same manifest was last applied to an object, so that nothing is applied, and changes by others stay.
func (p *Prepared) Unchanged(annotations map[string]string) bool {
	return p.Hash != "" && annotations[workv1.ManifestConfigSpecHashAnnotationKey] == p.Hash
}

// Prepare prepares a manifest, which it does not change. It takes little more than a second at most. Its error is an Error.
func Prepare(manifest *unstructured.Unstructured, fields []workv1.IgnoreField) (*Prepared, error) {
	whole := manifest.DeepCopy()
	stripTimes(whole.Object)
	if len(fields) == 0 {
		return &Prepared{Whole: whole, Reduced: whole}, nil
	}
	reduced := whole.DeepCopy()
	limited, cancel := context.WithTimeout(context.Background(), jqTime)
	defer cancel()
	for i := range fields {
		// Fields that are ignored after another client has changed them are part of the hash: they are applied again with the next manifest.
		if fields[i].Condition == workv1.IgnoreFieldsConditionOnSpokeChange {
			continue
		}
		if err := remove(limited, reduced.Object, &fields[i]); err != nil {
			return nil, &Error{err}
		}
	}
	if identity(reduced) != identity(whole) {
		return nil, &Error{errors.New("expected fields without which an object is still the same: apiVersion, kind, metadata.name and metadata.namespace cannot be ignored")}
	}
	hash := hashOf(reduced.Object)
	for _, object := range []*unstructured.Unstructured{whole, reduced} {
		annotations := maps.Clone(object.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[workv1.ManifestConfigSpecHashAnnotationKey] = hash
		object.SetAnnotations(annotations)
	}
	return &Prepared{Whole: whole, Reduced: reduced, Hash: hash}, nil
}

func identity(o *unstructured.Unstructured) [4]string {
	return [4]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}
}

// hashOf returns the same hash as Open Cluster Management, so that an agent that takes over from another does not apply everything again. It is for
// detecting changes, not for security.
func hashOf(object map[string]any) string {
	return fmt.Sprintf("%x", md5.Sum(fmt.Appendf(nil, "&{%v}", object)))
}

func remove(ctx context.Context, object map[string]any, field *workv1.IgnoreField) error {
	meter := jsonpath.NewMeter(jsonpath.Steps)
	for _, path := range field.JSONPaths {
		if err := removePath(object, path, meter); err != nil {
			return fmt.Errorf("JSON path error in '%s': %w", path, err)
		}
	}
	for _, pointer := range field.JSONPointers {
		if err := removePointer(object, pointer); err != nil {
			return fmt.Errorf("JSON Pointer error in '%s': %w", pointer, err)
		}
	}
	for _, expression := range field.JQPathExpressions {
		if err := removeJQ(ctx, object, expression); err != nil {
			return fmt.Errorf("JQ expression error in '%s': %w", expression, err)
		}
	}
	return nil
}

// removePath removes fields, but no items of lists, since that would shift the other items. Fields that do not exist are ignored.
func removePath(object map[string]any, path string, meter *jsonpath.Meter) error {
	parsed, err := jsonpath.Parse(path)
	if err != nil {
		return err
	}
	parents, name, err := parsed.Field(object, meter)
	if errors.Is(err, jsonpath.ErrCost) || errors.Is(err, jsonpath.ErrNoField) {
		return err
	}
	for _, parent := range parents {
		delete(parent, name)
	}
	return nil
}

// stripTimes removes null creationTimestamps from all metadata: a server that prunes them increments the generation each time.
func stripTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			if created, ok := metadata["creationTimestamp"]; ok && created == nil {
				delete(metadata, "creationTimestamp")
			}
		}
		for _, inner := range v {
			stripTimes(inner)
		}
	case []any:
		for _, inner := range v {
			stripTimes(inner)
		}
	}
}
