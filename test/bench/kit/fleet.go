// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// SetSize is the number of clusters in a set.
const SetSize = 100

// StageSize is a fleet size at which lists are also measured on the way to a larger one, to compare our own times.
const StageSize = 10_000

// Kind is ours or the peer's.
type Kind struct {
	Name, APIVersion, Path string
}

// Ours and Peer are the kinds that are compared.
var (
	Ours = Kind{"ours", ClusterGroup + "/v1", ClustersPath}
	Peer = Kind{"peer", "bench.clusterhub.dev/v1", PeerClustersPath}
)

// ClusterName returns the name of the ith cluster of the fleet.
func ClusterName(i int) string { return fmt.Sprintf("cluster-%06d", i) }

// SetName returns the name of the ith set.
func SetName(i int) string { return fmt.Sprintf("set-%04d", i) }

// SetOf returns the set of a cluster. The sets are filled one after the other, so that a part of the fleet has full sets.
func SetOf(i int) string { return SetName(i / SetSize) }

// BySetField returns a query for the members of a set.
func BySetField(set string) string {
	return url.Values{"fieldSelector": {"spec.clusterSet=" + set}}.Encode()
}

// BySetLabel returns a query for the clusters of a set.
func BySetLabel(set string) string {
	return url.Values{"labelSelector": {SetLabel + "=" + set}}.Encode()
}

// CreationOrder returns the order in which the clusters from (inclusive) to (exclusive) are created. Neighbors are in different sets, as when clusters of
// many teams join at the same time.
func CreationOrder(from, to int) []int {
	result := make([]int, 0, to-from)
	for offset := range SetSize {
		for i := from + offset; i < to; i += SetSize {
			result = append(result, i)
		}
	}
	return result
}

// caBundle has the size of one PEM certificate.
var caBundle = base64.StdEncoding.EncodeToString([]byte(
	"-----BEGIN CERTIFICATE-----\n" + strings.Repeat(strings.Repeat("MIIDBTCCAe2g", 5)+"abcd\n", 16) +
		"-----END CERTIFICATE-----\n"))

// ClusterBody returns a cluster as an agent or an importer creates it.
func ClusterBody(k Kind, i int) []byte {
	return MustJSON(map[string]any{
		"apiVersion": k.APIVersion, "kind": "ManagedCluster",
		"metadata": map[string]any{
			"name": ClusterName(i),
			"labels": map[string]string{
				SetLabel: SetOf(i), "vendor": "OpenShift", "cloud": pick(i, "Amazon", "Azure", "Google", "BareMetal"),
				"region": pick(i/7, "eu-west-1", "us-east-1", "ap-northeast-1"), "name": ClusterName(i),
				"env": pick(i/3, "production", "staging"),
			},
			"annotations": map[string]string{"open-cluster-management.io/created-via": "other"},
		},
		"spec": map[string]any{
			"leaseDurationSeconds": 60,
			"managedClusterClientConfigs": []any{map[string]any{
				"url": fmt.Sprintf("https://api.%s.example.com:6443", ClusterName(i)), "caBundle": caBundle,
			}},
		},
	})
}

// StatusBody returns a merge patch with what an agent and the hub's controllers report for a cluster.
func StatusBody(i int) []byte {
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message,
			"lastTransitionTime": "2026-01-12T08:00:00Z"}
	}
	resources := map[string]string{
		"cpu": fmt.Sprint(8 + i%64), "memory": fmt.Sprintf("%dKi", 32_000_000+i), "pods": "750",
	}
	return MustJSON(map[string]any{"status": map[string]any{
		"conditions": []any{
			condition("HubAcceptedManagedCluster", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
			condition("ManagedClusterJoined", "ManagedClusterJoined", "Managed cluster joined"),
			condition("ManagedClusterConditionAvailable", "ManagedClusterAvailable", "Managed cluster is available"),
		},
		"capacity": resources, "allocatable": resources,
		"version": map[string]any{"kubernetes": pick(i, "v1.37.1", "v1.36.4")},
		"clusterClaims": []any{
			map[string]any{"name": "id.k8s.io", "value": ClusterName(i)},
			map[string]any{"name": "platform.open-cluster-management.io", "value": "AWS"},
			map[string]any{"name": "product.open-cluster-management.io", "value": "OpenShift"},
		},
	}})
}

// SetBody returns the ith set.
func SetBody(i int) []byte {
	return MustJSON(map[string]any{"apiVersion": ClusterGroup + "/v1beta2", "kind": "ManagedClusterSet",
		"metadata": map[string]any{"name": SetName(i)}, "spec": map[string]any{}})
}

// LabelPatch returns a merge patch that moves a cluster to a set.
func LabelPatch(set string) []byte {
	return MustJSON(map[string]any{"metadata": map[string]any{"labels": map[string]string{SetLabel: set}}})
}

func pick(i int, values ...string) string { return values[i%len(values)] }

// MustJSON returns the JSON of strings, numbers and maps.
func MustJSON(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // strings and maps only
	}
	return bytes.TrimSpace(buffer.Bytes())
}
