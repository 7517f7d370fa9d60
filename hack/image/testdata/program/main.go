// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Program is what the tests make images of.
package main

func main() {}
