// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates objects of edge.clusterhub.dev.
package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxArchive is the maximum size of the archive of a service, in bytes.
	MaxArchive = 512_000
	// MostWeight is the maximum weight of an EdgeService, as measured by bounds.Heavier: 768 KiB.
	MostWeight = 768 << 10

	maxName         = validation.DNS1123SubdomainMaxLength
	maxLabel        = validation.DNS1123LabelMaxLength
	maxText         = 4096
	maxLink         = 2048
	maxDeployment   = 64 << 10
	maxProperties   = 128
	maxPropertyName = 128
	maxValue        = 1024
	maxConstraints  = 64
	maxConstraint   = 4096
	maxVersions     = 32
	maxPriority     = 1000
	maxRetries      = 100
	maxDuration     = 7 * 24 * 60 * 60
	maxInputs       = 64
	maxVariables    = 128
	maxEntries      = 128
	maxRange        = 128
	maxServices     = 32
	maxConditions   = 16
	maxExcluded     = 32
	maxMessage      = 1024
	maxWork         = 188
	maxObjects      = 256
	maxCPU          = 1 << 20
	maxMemory       = 1 << 40

	maxCheckedServices = 16
	maxCheckedNodes    = 128
	maxNodeNames       = 1000
	maxAnswers         = 1000
	maxContinue        = 63
)
