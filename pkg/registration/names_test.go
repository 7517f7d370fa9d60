// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// The names that follow from the name of a cluster must not be used already.
func TestCheckName_RejectsReserved(t *testing.T) {
	shared := map[string]bool{AgentClusterRole: true, WorkClusterRole: true, ManagedClustersGroup: true, cluster.RecordNamespace: true}
	for _, name := range []string{"registration", "work", "managed-clusters", "clusterhub-registration", "c1", "default", "workload"} {
		collides := shared[ClusterRole(name)] || shared[ClusterGroup(name)] || shared[AWSGroup(name)] || shared[name]
		if refused := CheckName(name) != nil; refused != collides {
			t.Errorf("%s: refused %t, collides %t", name, refused, collides)
		}
	}
}

func TestNames_MatchUpstream(t *testing.T) {
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
		ConditionDeleting:        "Deleting",
		ReasonResourceRemaining:  "ResourceRemaining",
		ReasonNoResource:         "NoResource",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A list that is too long must not mean the same as an empty one, with which all users may request.
func TestRequesters_TooManyAreInvalid(t *testing.T) {
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
		// Addons of upstream: their agents on all clusters share the first group.
		{[]string{clusterPrefix + "addon:proxy", clusterPrefix + "cluster:c1:addon:proxy"}, "c1"},
		{[]string{clusterPrefix + "cluster:c1:addon:proxy", clusterPrefix + "addon:proxy"}, "c1"},
		{[]string{clusterPrefix + "addon:proxy"}, ""},
		// Groups of users.
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

func TestAgentCluster(t *testing.T) {
	system, aws := []string{ManagedClustersGroup, ClusterGroup("c1"), "system:authenticated"}, []string{AWSGroup("c1"), AWSManagedClustersGroup}
	with := func(groups []string, more ...string) []string { return slices.Concat(groups, more) }
	const doubt = "?" // an agent, of no cluster
	for _, c := range []struct {
		user    string
		groups  []string
		cluster string
	}{
		// Agents: of ours and of upstream, by aws-auth, by an access entry of ours and of upstream.
		{ClusterUser("c1", "a"), system, "c1"},
		{ClusterGroup("c1"), system, "c1"},
		{AWSGroup("c1"), aws, "c1"},
		{"c1", aws, "c1"},
		{"arn:aws:sts::1:assumed-role/r/s", aws, "c1"},
		{ClusterUser("c1", "a"), with(system, "team", ClusterGroup("c1"), ManagedClustersGroup), "c1"},
		{ClusterUser("c1", "a"), with(system, "system:masters"), "c1"},
		// Not agents of clusters.
		{ClusterUser("c1", "a"), nil, ""},
		{ClusterUser("c1", "a"), []string{ClusterGroup("c1")}, ""},
		{"ann", []string{AWSGroup("admins")}, ""},
		{"ann", []string{"x" + ManagedClustersGroup, ManagedClustersGroup + ":x", "x" + AWSManagedClustersGroup}, ""},
		{"a", []string{clusterPrefix + "addon:proxy", clusterPrefix + "cluster:c1:addon:proxy"}, ""},
		// Of no cluster.
		{"a", []string{ManagedClustersGroup}, doubt},
		{ClusterUser("c1", "a"), []string{ManagedClustersGroup}, doubt},
		{"a", []string{AWSManagedClustersGroup}, doubt},
		{AWSGroup("c1"), []string{AWSManagedClustersGroup}, doubt},
		{"a", []string{ManagedClustersGroup, AWSGroup("c1")}, doubt},
		{"a", []string{AWSManagedClustersGroup, ClusterGroup("c1")}, doubt},
		// Of two.
		{"a", with(system, ClusterGroup("c2")), doubt},
		{"a", with([]string{ClusterGroup("c2")}, system...), doubt},
		{"a", with(aws, AWSGroup("c2")), doubt},
		{"a", with(system, AWSGroup("c2")), doubt},
		{"a", with(system, aws...), doubt},
		{"a", with(system, AWSManagedClustersGroup), doubt},
		{"a", with(aws, ManagedClustersGroup), doubt},
		{"a", with(system, clusterPrefix+"addon:proxy"), doubt},
		{"a", with(system, clusterPrefix+"cluster:c1:addon:proxy"), doubt},
		// Of another by its name.
		{ClusterUser("c2", "a"), system, doubt},
		{ClusterGroup("c2"), system, doubt},
		{AWSGroup("c2"), system, doubt},
		{AWSGroup("c2"), aws, doubt},
		{ClusterUser("c2", "a"), aws, doubt},
		{clusterPrefix, system, doubt},
		{ClusterUser("c1x", "a"), system, doubt},
		{ClusterUser(AWSGroup("c1"), "a"), system, doubt},
		{ClusterUser("cluster:c1:addon:proxy", "a"), system, doubt},
		// No cluster has such a name.
		{"a", []string{ManagedClustersGroup, ClusterGroup("work")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup("registration")}, doubt},
		{"a", []string{AWSManagedClustersGroup, AWSGroup("work")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup("")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup("c1/status")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup("C1")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup("*")}, doubt},
		{"a", []string{ManagedClustersGroup, ClusterGroup(" c1")}, doubt},
	} {
		cluster, agent := AgentCluster(c.user, c.groups)
		if want := strings.TrimSuffix(c.cluster, doubt); cluster != want || agent != (c.cluster != "") {
			t.Errorf("%q in %q: %q, %t, want %q", c.user, c.groups, cluster, agent, c.cluster)
		}
	}
}
