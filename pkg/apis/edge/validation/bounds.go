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

	maxLabel      = validation.DNS1123LabelMaxLength
	maxText       = 4096
	maxDeployment = 64 << 10
	maxValue      = 1024
	maxEntries    = 128
)
