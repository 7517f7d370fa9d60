// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func TestGet_PrintsTables(t *testing.T) {
	_, config := clitest.NewFleet(t)
	for _, test := range []struct{ args, want string }{
		{"get clusters", `NAME ACCEPTED AVAILABLE CLUSTERSET CPU MEMORY KUBERNETES VERSION
c1 true False payments 4 8Gi v1.37.1
c2 false Unknown <none> <none> <none> <none>`},
		{"get cluster -o wide", `NAME ACCEPTED AVAILABLE CLUSTERSET CPU MEMORY KUBERNETES VERSION JOINED REGISTRATION AGE
c1 true False payments 4 8Gi v1.37.1 True csr <unknown>
c2 false Unknown <none> <none> <none> <none> Unknown awsirsa <unknown>`},
		{"get clusters --clusterset production", `NAME ACCEPTED AVAILABLE CLUSTERSET CPU MEMORY KUBERNETES VERSION
c1 true False payments 4 8Gi v1.37.1`},
		{"get clustersets", `NAME BOUND NAMESPACES STATUS MANAGED NAMESPACES
empty <none> <unknown> <none>
production team-a,team-b 1 ManagedClusters selected web,db`},
		{"get clusterset -o wide", `NAME BOUND NAMESPACES STATUS MANAGED NAMESPACES SELECTOR AGE
empty <none> <unknown> <none> LabelSelector <unknown>
production team-a,team-b 1 ManagedClusters selected web,db LabelSelector <unknown>`},
		{"members production", `CLUSTER ACCEPTED JOINED AVAILABLE KUBERNETES VERSION
c1 false True Unknown <none>`},
		{"members production -o wide", `CLUSTER ACCEPTED JOINED AVAILABLE KUBERNETES VERSION SELECTED BY TAINTS
c1 false True Unknown <none> env=prod <none>`},
	} {
		if got := clitest.Squeeze(clitest.MustRun(t, config, strings.Fields(test.args)...)); got != test.want {
			t.Errorf("%s prints\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
}

func TestGet_PrintsObjects(t *testing.T) {
	_, config := clitest.NewFleet(t)
	for command, want := range map[string]struct{ names, kind, FirstArg string }{
		"get clusters": {"managedcluster.cluster.open-cluster-management.io/c1\nmanagedcluster.cluster.open-cluster-management.io/c2\n",
			"ManagedCluster", "c1"},
		"get clusters --clusterset production": {"managedcluster.cluster.open-cluster-management.io/c1\n", "ManagedCluster", "c1"},
		"get clustersets": {"managedclusterset.cluster.open-cluster-management.io/empty\n" +
			"managedclusterset.cluster.open-cluster-management.io/production\n", "ManagedClusterSet", "empty"},
		"members production": {"clustersetmember.view.clusterhub.dev/c1.production\n", "ClusterSetMember", "c1.production"},
	} {
		args := strings.Fields(command)
		if got := clitest.MustRun(t, config, append(args, "-o", "name")...); got != want.names {
			t.Errorf("%s -o name: %q, want %q", command, got, want.names)
		}
		var list struct {
			Kind, APIVersion string
			Items            []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal([]byte(clitest.MustRun(t, config, append(args, "-o", "json")...)), &list); err != nil {
			t.Errorf("%s -o json: %v", command, err)
		} else if list.Kind != want.kind+"List" || list.APIVersion == "" || len(list.Items) == 0 || list.Items[0].Kind != want.kind ||
			list.Items[0].Name != want.FirstArg {
			t.Errorf("%s -o json: %+v", command, list)
		}
		clitest.Says(t, clitest.MustRun(t, config, append(args, "-o", "yaml")...), "kind: "+want.kind+"\n", "name: "+want.FirstArg+"\n")
		if got := clitest.MustRun(t, config, append(args, "-o", "jsonpath={.items[0].metadata.name}")...); got != want.FirstArg {
			t.Errorf("%s -o jsonpath: %q", command, got)
		}
	}
}

// TestGet_ReadsAllPages verifies that all pages of a list are read.
func TestGet_ReadsAllPages(t *testing.T) {
	s, config := clitest.NewFleet(t)
	s.PageSize = 1
	s.Put(clitest.NewMember("production", "c2", "env=prod"))
	if got := clitest.MustRun(t, config, "get", "clusters", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("it prints %q", got)
	}
	s.WantAsked("GET "+clitest.ClustersPath+"?limit=500", "GET "+clitest.ClustersPath+"?continue=1&limit=500")
	if got := clitest.MustRun(t, config, "members", "production", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("it prints %q", got)
	}
	s.WantAsked("GET "+clitest.SetsPath+"/production", "GET "+clitest.MembersPath+"?fieldSelector=spec.clusterSet%3Dproduction&limit=500",
		"GET "+clitest.MembersPath+"?continue=1&fieldSelector=spec.clusterSet%3Dproduction&limit=500")
}

// TestGet_HubDeterminesMembers verifies that the hub determines the members of a set. The selector only reduces the number of clusters that are
// listed.
func TestGet_HubDeterminesMembers(t *testing.T) {
	s, config := clitest.NewFleet(t)
	s.Put(clitest.NewCluster("c3", map[string]string{"env": "prod"})) // the selector matches it, and it is not a member yet
	if got := clitest.MustRun(t, config, "get", "clusters", "--clusterset", "production", "-o", "name"); !strings.HasSuffix(got, "/c1\n") || strings.Contains(got, "c3") {
		t.Errorf("it prints %q", got)
	}
	s.WantAsked("GET "+clitest.SetsPath+"/production", "GET "+clitest.MembersPath+"*", "GET "+clitest.ClustersPath+"?labelSelector=env%3Dprod&limit=500")
}

func TestGet_Empty(t *testing.T) {
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t, clitest.NewSet("empty"))})
	for command, want := range map[string]string{
		"get clusters": "No clusters found.\n", "get clusters --clusterset empty": "No clusters found.\n",
		"members empty": "The set empty has no members.\n",
	} {
		stdout, stderr, err := clitest.Run(t, config, strings.Fields(command)...)
		if err != nil || stdout != "" || stderr != want {
			t.Errorf("%s: %v, %q, %q", command, err, stdout, stderr)
		}
		// Programs get an empty list.
		clitest.Says(t, clitest.MustRun(t, config, append(strings.Fields(command), "-o", "json")...), `"items": []`)
	}
}

// TestGet_ShowsUnknown verifies that what the user may not see is shown as unknown.
func TestGet_ShowsUnknown(t *testing.T) {
	s, config := clitest.NewFleet(t)
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings", clitest.Forbidden("managedclustersetbindings", "list"))
	if got := clitest.Squeeze(clitest.MustRun(t, config, "get", "clustersets")); !strings.Contains(got, "production <unknown> 1 ManagedClusters") {
		t.Errorf("it prints %s", got)
	}
	s.Refuse("GET "+clitest.ClustersPath, clitest.Forbidden("managedclusters", "list"))
	_, _, err := clitest.Run(t, config, "get", "clusters", "--clusterset", "production")
	if err == nil {
		t.Fatal("it lists the clusters")
	}
	clitest.Says(t, err.Error(), "cannot list", "(kubectl hub members production shows those that you can see)")
}

// TestGet_EscapesControlCharacters verifies that a message of a condition, which other users may have written, cannot move the cursor of a user
// who reads a set.
func TestGet_EscapesControlCharacters(t *testing.T) {
	set := clitest.NewSet("s")
	set.Status.Conditions = []metav1.Condition{{Type: v1beta2.ManagedClusterSetConditionEmpty, Message: "\x1b[2J\x1b[1;1Hempty"}}
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t, set)})
	if got := clitest.MustRun(t, config, "get", "clustersets"); strings.Contains(got, "\x1b") || !strings.Contains(got, "empty") {
		t.Errorf("it prints %q", got)
	}
}
