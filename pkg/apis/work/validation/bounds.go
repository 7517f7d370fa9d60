// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates what the markers of the types of work.open-cluster-management.io do not declare. It runs after the validation of the
// declared bounds, and relies on it. What upstream's schema rejects is invalid. BadManifests and BadManifestWork return what upstream's webhook rejects,
// with upstream's words, since the answer is upstream's as well.
package validation

const (
	// StatusLimit is the maximum number of bytes of the texts and entries of the status of a work.
	StatusLimit = 512_000
	// MostWeight is the maximum number of bytes in the entries of an object that is validated. It is above what admission allows to be
	// stored: manifests (pkg/admission/work/manifestsize), a status, and all else (pkg/admission/objectsize).
	MostWeight = 1536 << 10
	// maxManifests is the declared bound of manifests, which admission needs before the manifests are read.
	maxManifests = 1024
)
