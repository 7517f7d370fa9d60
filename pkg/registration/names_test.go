// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// What a name of a cluster makes must not be what another thing is called already.
func TestCheckName_RefusesWhatWouldBeSharedByAll(t *testing.T) {
	shared := map[string]bool{AgentClusterRole: true, WorkClusterRole: true, ManagedClustersGroup: true, cluster.RecordNamespace: true}
	for _, name := range []string{"registration", "work", "managed-clusters", "clusterhub-registration", "c1", "default", "workload"} {
		collides := shared[ClusterRole(name)] || shared[ClusterGroup(name)] || shared[AWSGroup(name)] || shared[name]
		if refused := CheckName(name) != nil; refused != collides {
			t.Errorf("%s: refused %t, collides %t", name, refused, collides)
		}
	}
}

func TestNames_AreThoseOfUpstream(t *testing.T) {
	for got, want := range map[string]string{
		ClusterGroup("c1"):       "system:open-cluster-management:c1",
		AWSGroup("c1"):           "open-cluster-management:c1",
		ClusterUser("c1", "a"):   "system:open-cluster-management:c1:a",
		ClusterRole("c1"):        "open-cluster-management:managedcluster:c1",
		AgentRoleBinding("c1"):   "open-cluster-management:managedcluster:c1:registration",
		WorkRoleBinding("c1"):    "open-cluster-management:managedcluster:c1:work",
		AgentClusterRole:         "open-cluster-management:managedcluster:registration",
		ManagedClustersGroup:     "system:open-cluster-management:managed-clusters",
		ConditionHubAccepted:     "HubAcceptedManagedCluster",
		ConditionAvailable:       "ManagedClusterConditionAvailable",
		ReasonLeaseUpdateStopped: "ManagedClusterLeaseUpdateStopped",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Too much must not mean the same as nothing, which is that all may ask.
func TestRequesters_OfWhichThereAreTooManyAreNone(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a,b": 2} {
		users, err := Requesters(map[string]string{AnnotationRequesters: text})
		if len(users) != want || err != nil {
			t.Errorf("%q are %q, %v, want %d users", text, users, err, want)
		}
	}
	users, err := Requesters(map[string]string{AnnotationRequesters: strings.Repeat("a,", 600)})
	if err == nil || len(users) == 0 || slices.Contains(users, "a") {
		t.Errorf("too many are %q, %v", users, err)
	}
}

func TestClusterOfAgent(t *testing.T) {
	for _, c := range []struct {
		groups  []string
		cluster string
	}{
		{[]string{"system:authenticated", ManagedClustersGroup, ClusterGroup("c1")}, "c1"},
		{[]string{AWSManagedClustersGroup, AWSGroup("c1")}, "c1"},
		{[]string{AWSGroup("c1"), AWSManagedClustersGroup}, "c1"},
		// Upstream's addons: their agents on all clusters share the first group.
		{[]string{clusterPrefix + "addon:proxy", clusterPrefix + "cluster:c1:addon:proxy"}, "c1"},
		{[]string{clusterPrefix + "cluster:c1:addon:proxy", clusterPrefix + "addon:proxy"}, "c1"},
		{[]string{clusterPrefix + "addon:proxy"}, ""},
		// Groups of people.
		{[]string{AWSGroup("c1")}, ""},
		{[]string{AWSGroup("admins"), "system:authenticated"}, ""},
		{[]string{ManagedClustersGroup, AWSGroup("admins")}, ""},
		{[]string{ManagedClustersGroup, AWSManagedClustersGroup}, ""},
		{[]string{"team", "system:masters", "x" + ClusterGroup("c1")}, ""},
		{nil, ""},
	} {
		if cluster, ok := ClusterOfAgent(c.groups); cluster != c.cluster || ok != (c.cluster != "") {
			t.Errorf("%q: %q, %t, want %q", c.groups, cluster, ok, c.cluster)
		}
	}
}
