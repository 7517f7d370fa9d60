// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/x509"
	"testing"
	"time"
)

func TestRotation_JitteredAroundFourFifths(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := &x509.Certificate{NotBefore: from, NotAfter: from.Add(100 * time.Hour)}
	for random, want := range map[float64]time.Duration{0: 75 * time.Hour, 0.5: 80 * time.Hour, 1: 85 * time.Hour} {
		if got := renewAt(leaf, random).Sub(from); got.Round(time.Second) != want {
			t.Errorf("with %v it is after %s, want %s", random, got, want)
		}
	}
}
