// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy passes requests for AWS to a handler: as an HTTPS proxy, or without a network.
package proxy
