// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sample selects the combinations of a computed matrix that a run of the tests tries.
package sample

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"testing"
)

// seedVariable names the environment variable with the seed of the selection. hack/test.sh sets it to the commit, so that runs of different
// commits try different combinations, and runs of one commit the same.
const seedVariable = "CLUSTERHUB_TEST_SEED"

// Third returns the numbers below n that a test tries: about a third of them and at least one, by the seed and the name of the test, in ascending
// order. Without a seed it returns all of them.
func Third(t testing.TB, n int) (picked []int) {
	t.Helper()
	first, least := 0, uint64(math.MaxUint64)
	for i := range n {
		value := hash(t, i)
		if Picks(t, i) {
			picked = append(picked, i)
		}
		if value < least {
			first, least = i, value
		}
	}
	if len(picked) == 0 && n > 0 {
		picked = []int{first}
	}
	if len(picked) < n {
		t.Logf("%d of %d combinations: %v. Set %s=%s to try the same again, and unset it to try all.", len(picked), n, picked, seedVariable, os.Getenv(seedVariable))
	}
	return picked
}

// Picks reports whether a test tries a combination that it knows by a name or a number: about every third, by the seed and the name of the
// test. Without a seed it tries all of them.
func Picks(t testing.TB, combination any) bool {
	return All() || hash(t, combination)%3 == 0
}

// All reports whether tests try all combinations: there is no seed.
func All() bool { return os.Getenv(seedVariable) == "" }

func hash(t testing.TB, combination any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, os.Getenv(seedVariable), " ", t.Name(), " ", combination)
	// Texts that differ in their last bytes alone have hashes that differ in few bits: spread them.
	v := h.Sum64()
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	return v ^ v>>33
}
