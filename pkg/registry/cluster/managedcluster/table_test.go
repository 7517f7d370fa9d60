// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func TestTable_Columns(t *testing.T) {
	c := validCluster()
	c.Spec.HubAcceptsClient = true
	c.Labels = map[string]string{cluster.ClusterSetLabel: "dev"}
	c.Status.Version.Kubernetes = "v1.37.1"
	c.Status.Conditions = []metav1.Condition{
		{Type: "ManagedClusterJoined", Status: "True"}, {Type: "ManagedClusterConditionAvailable", Status: "Unknown"},
	}
	table, err := tableConvertor.ConvertToTable(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
		if column.Description == "" {
			t.Errorf("%s has no description", column.Name)
		}
	}
	want := "[Name/0 Hub Accepted/0 Managed Cluster URLs/0 Joined/0 Available/0 Age/0 Version/1 Cluster Set/1]"
	if got := fmt.Sprint(columns); got != want {
		t.Errorf("columns\ngot  %s\nwant %s", got, want)
	}
	want = "[c1 true https://a.example.com,https://b.example.com True Unknown <unknown> v1.37.1 dev]"
	if got := fmt.Sprint(table.Rows[0].Cells); got != want {
		t.Errorf("cells\ngot  %s\nwant %s", got, want)
	}
}
