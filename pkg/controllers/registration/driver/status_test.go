// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"strings"
	"testing"
)

func TestMessage_CutsNoCharacter(t *testing.T) {
	if got, want := Message(errors.New("x"+strings.Repeat("é", maxMessage))), "x"+strings.Repeat("é", (maxMessage-1)/2)+" …"; got != want {
		t.Errorf("%d bytes, which end with %q", len(got), got[len(got)-8:])
	}
}
