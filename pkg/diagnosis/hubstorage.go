// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

func (h *Hub) storage() (found []Finding) {
	s := h.Storage
	f := Finding{Object: "etcd", Turn: turnAdmin}
	switch {
	case s.Refused != "":
		f.ID, f.Severity, f.Cause = StorageFull, Error, "hub-apiserver refuses writes because the storage is full: "+dotless(s.Refused)+"."
	case s.Quota > 0 && s.Size >= s.Quota:
		f.ID, f.Severity, f.Cause = StorageFull, Error, fmt.Sprintf("An etcd uses %s of its quota of %s.", mebibytes(s.Size), mebibytes(s.Quota))
	case s.Quota > 0 && s.Size >= s.Quota/10*9:
		f.ID, f.Severity, f.Cause = StorageNearlyFull, Warning, fmt.Sprintf("An etcd uses %s of its quota of %s.", mebibytes(s.Size), mebibytes(s.Quota))
	default:
		return nil
	}
	large, words := h.largest()
	f.Cause += words
	f.Fix = []string{
		"# delete objects that are not needed: deletions still work, and hub-apiserver then frees the space",
		"kubectl get managedclusters --sort-by=.metadata.creationTimestamp",
	}
	if f.ID == StorageFull && len(large) > 0 {
		f.Fix = append(f.Fix, "# large clusters that are not accepted: agents that still run create them again",
			paste(append([]string{"kubectl", "delete", "managedclusters." + clusterv1.GroupName, "--wait=false"}, large...)...))
	}
	f.Fix = append(f.Fix, "# an etcd outside of hub-apiserver: docs/operating.md#storage")
	return append(found, f)
}

const (
	// maxDeleted is the largest number of clusters that a command deletes, and largeFrom the size in bytes from which an object is listed.
	maxDeleted, largeFrom = 20, 16 << 10
)

// largest returns the names of large clusters that nothing depends on, because they are not accepted, and a description of the largest of all
// clusters.
func (h *Hub) largest() (names []string, words string) {
	type sized struct {
		*clusterv1.ManagedCluster
		size int
	}
	all := make([]sized, len(h.Clusters.Items))
	for i := range h.Clusters.Items {
		data, _ := json.Marshal(&h.Clusters.Items[i]) // objects that were read can be marshaled
		all[i] = sized{&h.Clusters.Items[i], len(data)}
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Or(b.size-a.size, cmp.Compare(a.Name, b.Name)) })
	if len(all) == 0 || all[0].size < largeFrom {
		return nil, ""
	}
	for _, c := range all {
		if c.size >= largeFrom && !c.Spec.HubAcceptsClient && len(names) < maxDeleted {
			names = append(names, c.Name)
		}
	}
	return names, fmt.Sprintf(" The largest of %d clusters is %s, with %d KiB.", len(all), oneLine(all[0].Name), all[0].size>>10)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
