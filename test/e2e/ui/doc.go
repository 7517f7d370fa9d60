// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui tests the page of "kubectl hub ui" in a real browser: what it shows to whom, and that other sites get nothing by it. It is a
// module of its own, so that what drives the browser is none of the product's dependencies.
package ui
