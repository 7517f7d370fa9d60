// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// checks are the checks of a kind before the generic server prepares and validates an object. The zero value has the checks of all kinds.
type checks struct {
	// weight is the maximum weight of an object, or 0.
	weight int
	// refuse is Kind.Refuse, or nil. The old object is nil for a new one.
	refuse func(updated, old runtime.Object) error
}

var versioner = storage.APIObjectVersioner{}

// CheckVersion rejects an invalid resource version, and names the parameter or field that has it. The store would report most of them as internal
// errors.
func CheckVersion(name, version string) error {
	if _, err := versioner.ParseResourceVersion(version); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s: %q is not a version that this server returned", name, version))
	}
	return nil
}

func checkList(options *internalversion.ListOptions) error {
	if options == nil {
		return nil
	}
	return CheckVersion("resourceVersion", options.ResourceVersion)
}

// checkNew rejects an object to be created that has a resource version, such as an exported one. The store would report it as an internal error, and
// ignore it in a dry run.
func (c checks) checkNew(obj runtime.Object) error {
	if version, err := versioner.ObjectResourceVersion(obj); err != nil || version != 0 {
		return apierrors.NewBadRequest(storage.ErrResourceVersionSetOnCreate.Error() +
			": remove metadata.resourceVersion, or update the object that has it")
	}
	if err := checkWeight(obj, nil, c.weight); err != nil || c.refuse == nil {
		return err
	}
	return c.refuse(obj, nil)
}

// checked rejects an update with an invalid resource version, and one that is too large to be validated.
func (c checks) checked(objInfo rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return rest.WrapUpdatedObjectInfo(objInfo, func(_ context.Context, updated, old runtime.Object) (runtime.Object, error) {
		object, err := meta.Accessor(updated)
		if err != nil {
			return nil, err
		}
		if err := CheckVersion("metadata.resourceVersion", object.GetResourceVersion()); err != nil {
			return nil, err
		}
		if err := checkWeight(updated, old, c.weight); err != nil || c.refuse == nil {
			return updated, err
		}
		return updated, c.refuse(updated, old)
	})
}
