// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
)

// TestControllersWithoutStorage_RemoveFinalizers: admission plugins of kube-apiserver give objects finalizers that only these controllers remove.
func TestControllersWithoutStorage_RemoveFinalizers(t *testing.T) {
	for name := range strings.SplitSeq(ControllersWithoutStorage, ",") {
		if strings.HasSuffix(name, "-protection-controller") {
			t.Errorf("%s is disabled, expected it to run: objects with its finalizer would never be deleted", strings.TrimPrefix(name, "-"))
		}
	}
}
