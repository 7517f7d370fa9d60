// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// patchModules are prefixes of the names of the functions that apply JSON patches and strategic merge patches. They panic on patches that do not have
// the expected format.
var patchModules = []string{"gopkg.in/evanphx/json-patch", "k8s.io/apimachinery/pkg/util/strategicpatch."}

// input decodes what a client has sent. The generic server returns errors of a patch without a status, which would be a 500: values with other types
// than in the schema, and directives that a strategic merge patch does not have. Errors of admission have a status (pkg/apiserver).
type input struct{ rest.UpdatedObjectInfo }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i input) UpdatedObject(ctx context.Context, old runtime.Object) (updated runtime.Object, err error) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		if !panickedIn(patchModules) {
			panic(reason)
		}
		updated, err = nil, apierrors.NewBadRequest("the patch is not valid for its type: an operation of a JSON patch lacks its value, "+
			"or a directive of a strategic merge patch has a value of another type")
	}()
	updated, err = i.UpdatedObjectInfo.UpdatedObject(ctx, old)
	return updated, asBadRequest(err)
}

// asBadRequest gives an error the status 400 if it has none and comes neither from the storage nor from the end of the request.
func asBadRequest(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var status apierrors.APIStatus
	var stored *storage.StorageError
	if errors.As(err, &status) || errors.As(err, &stored) {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the patch cannot be applied: %v", err))
}

// panickedIn reports, while a panic is handled, whether a function of one of the modules panicked.
func panickedIn(modules []string) bool {
	pcs := make([]uintptr, 64)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(0, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case name == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "internal/runtime/"):
			return slices.ContainsFunc(modules, func(module string) bool { return strings.HasPrefix(name, module) })
		}
		if !more {
			return false
		}
	}
}
