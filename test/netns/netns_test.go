// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"net"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/test/binaries"
)

// TestCluster_IsIsolated verifies that the cluster cannot connect to servers outside, and that clients outside can connect to it.
func TestCluster_IsIsolated(t *testing.T) {
	bin := binaries.Kubernetes(t, t.TempDir())
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	c := Start(t, Config{BinDir: bin})

	if client, err := kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		t.Fatal(err)
	} else if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("clients outside do not reach it: %v", err)
	}
	if out, err := c.Kubectl(t.Context(), "get", "namespaces").CombinedOutput(); err != nil {
		t.Errorf("kubectl: %v: %s", err, out)
	}
	if err := c.Alone(); err != nil {
		t.Error(err)
	}
	// The connections that are tried from inside work outside, and for servers inside.
	own, err := c.Inside()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reaches(own); err != nil {
		t.Errorf("inside, it does not reach itself: %v", err)
	}
	if conn, err := net.Dial("tcp", outside.Addr().String()); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	if err := c.Reaches(outside.Addr().String()); err == nil {
		t.Error("it reaches what is outside")
	}
}
