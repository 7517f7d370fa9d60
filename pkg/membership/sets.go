// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

// SetsOf returns the names of the sets that a cluster is in, in order.
func (x *Index) SetsOf(clusterName string) []string {
	entry := x.clusters[clusterName]
	if entry == nil {
		return nil
	}
	names := make([]string, len(entry.sets))
	for i, s := range entry.sets {
		names[i] = s.name
	}
	return names
}
