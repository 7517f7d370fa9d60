// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Program is what the tests make a release of.
package main

import "fmt"

func main() { fmt.Println("kubectl hub version v1.2.3-rc.1") }
