// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwt parses JSON Web Tokens, and verifies their signatures.
package jwt
