// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// All addresses of the flags are on the hub, each once, beside those of others.
func TestCluster_ReportsAllAddresses(t *testing.T) {
	c := &ClusterConfig{ServerURL: "https://a", Addresses: []clusterv1.ClientConfig{{URL: "https://b", CABundle: []byte("new")}, {URL: "https://c"}}}
	configs := c.New("c1", nil).Spec.ManagedClusterClientConfigs
	if len(configs) != 3 || configs[0].URL != "https://a" || string(configs[1].CABundle) != "new" || configs[2].URL != "https://c" {
		t.Errorf("it is made with %+v", configs)
	}
	have := &clusterv1.ManagedCluster{}
	have.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://b", CABundle: []byte("old")}, {URL: "https://theirs"}}
	next, changed := c.Update(have)
	configs = next.Spec.ManagedClusterClientConfigs
	if !changed || len(configs) != 4 || string(configs[0].CABundle) != "new" || configs[1].URL != "https://theirs" || configs[2].URL != "https://a" || configs[3].URL != "https://c" {
		t.Errorf("it becomes %+v", configs)
	}
	if string(have.Spec.ManagedClusterClientConfigs[0].CABundle) != "old" {
		t.Error("what was read is changed")
	}
	if _, again := c.Update(next); again {
		t.Error("what is so is written again")
	}
	if next, changed := (&ClusterConfig{}).Update(have); changed || len(next.Spec.ManagedClusterClientConfigs) != 2 {
		t.Errorf("without addresses it becomes %+v", next.Spec.ManagedClusterClientConfigs)
	}
}
