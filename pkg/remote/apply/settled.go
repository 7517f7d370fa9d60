// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationApplied has a hash of the fields that were given last.
const annotationApplied = "operator.clusterhub.dev/applied-sha256"

// Settled returns a strategy that sends no request if it would change nothing: the existing object has all given fields, and the same fields were
// given last time. An annotation has a hash of them, so that fields that are no longer given are removed.
func Settled(otherwise Strategy) Strategy {
	return func(ctx context.Context, c client.Client, want, have client.Object) error {
		given, ok := want.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%T cannot be compared with what is there: only unstructured objects can", want)
		}
		data, err := json.Marshal(given.Object)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		annotations := given.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationApplied] = hex.EncodeToString(sum[:])
		given.SetAnnotations(annotations)
		if there, ok := have.(*unstructured.Unstructured); ok && there != nil && covers(there.Object, given.Object) {
			return nil
		}
		return otherwise(ctx, c, given, have)
	}
}

// covers reports whether a value has everything that is given. Zero values that servers omit count as present.
func covers(there, given any) bool {
	switch given := given.(type) {
	case map[string]any:
		fields, ok := there.(map[string]any)
		for name, value := range given {
			field, has := fields[name]
			if !ok || !has && !isZero(value) || has && !covers(field, value) {
				return false
			}
		}
		return ok
	case []any:
		items, ok := there.([]any)
		if !ok || len(items) != len(given) {
			return false
		}
		for i := range given {
			if !covers(items[i], given[i]) {
				return false
			}
		}
		return true
	}
	return there == given || fmt.Sprint(there) == fmt.Sprint(given) && isNumber(there) && isNumber(given)
}

func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	}
	return isNumber(value) && fmt.Sprint(value) == "0"
}

func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64, int, int32:
		return true
	}
	return false
}
