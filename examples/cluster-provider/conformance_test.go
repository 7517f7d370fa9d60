// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/test/clusterprovider"
)

// TestConformance looks at a provider that runs, in whatever language it is written: PROVIDER is its name, KUBECONFIG reaches
// the hub as an admin.
func TestConformance(t *testing.T) {
	if os.Getenv("PROVIDER") == "" {
		t.Skip("PROVIDER does not name a provider that runs")
	}
	hub, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	clusterprovider.Run(t, clusterprovider.Config{Hub: hub, Provider: os.Getenv("PROVIDER")})
}
