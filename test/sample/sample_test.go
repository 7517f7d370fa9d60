// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"slices"
	"testing"
)

func TestThird(t *testing.T) {
	t.Setenv(seedVariable, "")
	if got := Third(t, 4); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("without a seed: %v, want all", got)
	}
	tried := map[int]int{}
	for seed := range 100 {
		t.Setenv(seedVariable, fmt.Sprint(seed))
		for n := range 4 {
			if got := Third(t, n); len(got) == 0 && n > 0 || !slices.Equal(got, Third(t, n)) {
				t.Errorf("seed %d: %v of %d", seed, got, n)
			}
		}
		for _, i := range Third(t, 30) {
			tried[i]++
		}
	}
	for i := range 30 {
		if tried[i] < 15 || tried[i] > 55 {
			t.Errorf("%d is tried with %d of 100 seeds, want about 33", i, tried[i])
		}
	}
}
