// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package iampolicy parses and evaluates the policies of IAM.
package iampolicy
