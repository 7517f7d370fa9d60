// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run evaluates one placement against a Snapshot. Schedule returns the writes of its decisions and its status, and Explain why each cluster
// was chosen or not.
package run
