// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sum returns the total of counts.
func Sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// FormatEach returns the most frequent ones, with their numbers per each of n.
func FormatEach(counts map[string]int, n int) (text string) {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %.3g", name, float64(counts[name])/float64(n))
	}
	return text
}

// FormatAll returns all requests with their numbers.
func FormatAll(counts ...map[string]int) string {
	all := map[string]int{}
	for _, c := range counts {
		maps.Copy(all, c)
	}
	if len(all) == 0 {
		return "no request"
	}
	return FormatEach(all, 1)
}

// WithoutWatches returns the requests that are not watches.
func WithoutWatches(requests map[string]int) map[string]int {
	left := maps.Clone(requests)
	maps.DeleteFunc(left, func(what string, _ int) bool { return strings.HasPrefix(what, "watch ") })
	return left
}
