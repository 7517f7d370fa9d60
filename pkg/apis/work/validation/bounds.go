// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates objects of work.open-cluster-management.io. What upstream's schema refuses is invalid; what its
// webhook refuses is in BadManifests and BadExecutor, with upstream's words, for an answer that is upstream's as well.
package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// StatusLimit is the maximum number of bytes of the texts and entries of the status of a work.
	StatusLimit = 512_000
	// MostWeight is the maximum number of bytes in the entries of an object that is validated. It is above what admission allows to be
	// stored: manifests (pkg/admission/work/manifestsize), a status, and all else (pkg/admission/objectsize).
	MostWeight = 1536 << 10
)

// What agents and tenants may write where upstream's CustomResourceDefinitions have no bound. docs/operating.md has the table.
const (
	maxName             = validation.DNS1123SubdomainMaxLength
	maxManifests        = 1024
	maxOrphaningRules   = 1024
	maxManifestConfigs  = 1024
	maxFeedbackRules    = 16
	maxJSONPaths        = 64
	maxPath             = 1024
	maxVersion          = 63
	maxConditionRules   = 64
	maxConditionType    = 316
	maxExpressions      = 16
	maxExpression       = 4096
	maxMessage          = 4096
	maxFieldManager     = 128
	maxIgnoreFields     = 2
	maxIgnoredPaths     = 128
	maxConditions       = 128
	maxStatusManifests  = 2048
	maxValues           = 1024
	maxValue            = 32768
	maxRawValue         = 1024
	maxAppliedResources = 2048
	maxPlacements       = 64
)
