// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.clusterhub.duration

// Package duration defines a duration that preserves the form in which it was written. metav1.Duration has the same type in JSON, but returns 90m
// as 1h30m0s, so that a program that compares a file with the object finds a difference.
package duration
