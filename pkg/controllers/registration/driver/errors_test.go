// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestTerminal_PreservesTextAndChain(t *testing.T) {
	plain := fmt.Errorf("reading: %w", io.EOF)
	err := fmt.Errorf("granting: %w", Terminal(plain))
	if err.Error() != "granting: reading: EOF" || !errors.Is(err, ErrTerminal) || !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if errors.Is(plain, ErrTerminal) {
		t.Error("every error is terminal")
	}
}
