// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	plainVersionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,2}$`)
	// Leading zeros are valid, as in Open Horizon: 1.01 is a version of a service.
	versionForm = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9}){0,2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	archForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$`)
	nameForm    = regexp.MustCompile(`^[^\pZ\pC]+$`)
)

// Values of arch that are not architectures, in services and in references to services.
var (
	anyService   = []string{"*"}
	anyReference = []string{"*", ""}
)

// plainVersion reports whether a text is a version as in properties, without a suffix.
func plainVersion(text string) bool {
	return len(text) <= maxLabel && plainVersionForm.MatchString(text)
}

func serviceVersion(version string, path *field.Path) field.ErrorList {
	if !versionForm.MatchString(version) {
		return field.ErrorList{field.Invalid(path, version, "must be 1 to 3 numbers with dots between them, such as 1.0.1, optionally with a suffix as in 1.0.1-rc1")}
	}
	return nil
}

func serviceURL(url string, path *field.Path) field.ErrorList {
	if !nameForm.MatchString(url) {
		return field.ErrorList{field.Invalid(path, url, "must have no spaces and no control characters")}
	}
	return nil
}

// arch rejects a text that is not an architecture, except those in besides, which mean any architecture.
func arch(arch string, besides []string, path *field.Path) field.ErrorList {
	if slices.Contains(besides, arch) || archForm.MatchString(arch) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, arch, "must be a value of GOARCH, such as amd64")}
}
