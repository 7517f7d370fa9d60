// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignorefields prepares manifests for ServerSideApply: what is applied of them, and by what it is told whether they have changed.
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

// Error is that of ignoreFields that cannot be followed. It has a reason of its own in the status.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.err }

// Is makes it known to the status.
func (e *Error) Is(target error) bool { return target == status.ErrIgnoreFields }

// Prepared is a manifest for ServerSideApply.
type Prepared struct {
	// Whole is what is applied where the object is not there, Reduced where it is, without the fields that are then ignored. Without
	// ignoreFields they are one and the same.
	Whole, Reduced *unstructured.Unstructured
	// Hash is that of Reduced, and in the annotation of both. It is "" without ignoreFields.
	Hash string
}

// Unchanged is whether an object was last applied of the same manifest, so that nothing is applied, and what others have changed
// of it stays.
func (p *Prepared) Unchanged(annotations map[string]string) bool {
	return p.Hash != "" && annotations[workv1.ManifestConfigSpecHashAnnotationKey] == p.Hash
}

// Prepare does not change the manifest, and takes little more than a second at most. Its error is an Error.
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
		// Those that are ignored when somebody has changed them count for the hash: they are applied again with the next manifest.
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

// hashOf is that of Open Cluster Management, so that an agent that takes over from another one does not apply everything again. It is
// for telling changes, not for security.
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

// removePath takes fields away, and no items of lists: the others would be taken for them. What is not there needs not be taken away.
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

// stripTimes takes null as creationTimestamp away from all metadata: a server that prunes it makes a new generation each time.
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
