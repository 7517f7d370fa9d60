// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sample selects the combinations of a computed matrix that a run of the tests tries.
package sample

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// seedVariable names the environment variable with the seed of the selection. hack/test.sh sets it to the commit, so that runs of different
// commits try different combinations, and runs of one commit the same.
const seedVariable = "CLUSTERHUB_TEST_SEED"

// Third returns the numbers below n that a test tries: about a third of them and at least one, by the seed and the name of the test, in ascending
// order. Without a seed it returns all of them.
func Third(t testing.TB, n int) []int {
	t.Helper()
	seed := os.Getenv(seedVariable)
	all, picked := make([]int, n), []int{}
	first, least := 0, uint64(1<<64-1)
	for i := range n {
		all[i] = i
		hash := fnv.New64a()
		fmt.Fprintf(hash, "%s %s %d", seed, t.Name(), i)
		value := mix(hash.Sum64())
		if value%3 == 0 {
			picked = append(picked, i)
		}
		if value < least {
			first, least = i, value
		}
	}
	switch {
	case seed == "" || n == 0:
		return all
	case len(picked) == 0:
		picked = append(picked, first)
	}
	t.Logf("%d of %d combinations: %v. Set %s=%s to try the same again, and unset it to try all.", len(picked), n, picked, seedVariable, seed)
	return picked
}

// mix spreads the bits of a hash of texts that differ in their last bytes alone.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h
}
