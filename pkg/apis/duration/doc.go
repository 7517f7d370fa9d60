// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.clusterhub.duration

// Package duration has the type of durations that are read back as they were written. It is used as metav1.Duration, which has the same form
// in JSON, but writes 90m as 1h30m0s: a program that compares a file with the object finds a difference then.
package duration
