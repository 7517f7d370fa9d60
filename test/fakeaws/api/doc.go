// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api has the parts of the API of AWS that all services share: their models, errors and signatures.
package api
