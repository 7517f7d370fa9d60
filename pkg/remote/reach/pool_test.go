// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"slices"
	"testing"
)

type closing func()

func (c closing) Close() { c() }

// TestPool verifies that a connection is opened once for a hash, and closed when the hash changes, even if the next one cannot be opened.
func TestPool(t *testing.T) {
	var closed, opened []string
	pool := &Pool[closing]{}
	get := func(name, hash string, err error) {
		t.Helper()
		_, got := pool.Get(name, hash, func() (closing, error) {
			opened = append(opened, name+hash)
			return func() { closed = append(closed, name+hash) }, err
		})
		if !errors.Is(got, err) {
			t.Errorf("the error is %v, want %v", got, err)
		}
	}
	get("a", "1", nil)
	get("a", "1", nil)
	get("b", "1", nil)
	get("a", "2", errors.ErrUnsupported)
	if pool.Has("a") || !pool.Has("b") {
		t.Errorf("has a: %t, has b: %t", pool.Has("a"), pool.Has("b"))
	}
	get("a", "3", nil)
	pool.Close("a")
	pool.Close("a")
	get("c", "1", nil)
	pool.CloseAll()
	if want := []string{"a1", "b1", "a2", "a3", "c1"}; !slices.Equal(opened, want) {
		t.Errorf("opened %q, want %q", opened, want)
	}
	slices.Sort(closed)
	if want := []string{"a1", "a3", "b1", "c1"}; !slices.Equal(closed, want) {
		t.Errorf("closed %q, want %q", closed, want)
	}
}
