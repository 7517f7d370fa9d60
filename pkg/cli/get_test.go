// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// squeeze replaces several spaces by one: the width of columns is up to the printer.
func squeeze(table string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

// newFleet returns a hub with two clusters: c1 has joined by certificate, and c2, by AWS IAM, has not been accepted.
func newFleet(t *testing.T) (*fakeServer, string) {
	t.Helper()
	c1 := newCluster("c1", map[string]string{"cluster.open-cluster-management.io/clusterset": "payments", "env": "prod"})
	c1.Spec.HubAcceptsClient = true
	c1.Status.Version.Kubernetes = "v1.37.1"
	c1.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}
	c1.Status.Conditions = []metav1.Condition{
		{Type: registration.ConditionJoined, Status: metav1.ConditionTrue}, {Type: registration.ConditionAvailable, Status: metav1.ConditionFalse},
	}
	c2 := newCluster("c2", nil)
	c2.Annotations = map[string]string{registration.AnnotationManagedClusterARN: managedARN}
	production := newSet("production")
	production.Spec.ManagedNamespaces = []v1beta2.ManagedNamespaceConfig{{Name: "web"}, {Name: "db"}}
	production.Status.Conditions = []metav1.Condition{{Type: v1beta2.ManagedClusterSetConditionEmpty, Message: "1 ManagedClusters selected"}}
	s := newServer(t, c1, c2, production, newSet("empty"), newMember("production", "c1", "env=prod"), newMember("global", "c2", ""),
		&v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "production"},
			Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: "production"}},
		&v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "production"},
			Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: "production"}})
	return s, kubeconfig(t, map[string]*fakeServer{"hub": s})
}

func TestGet_PrintsTables(t *testing.T) {
	_, config := newFleet(t)
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
		if got := squeeze(mustRun(t, config, strings.Fields(test.args)...)); got != test.want {
			t.Errorf("%s prints\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
}

func TestGet_PrintsObjects(t *testing.T) {
	_, config := newFleet(t)
	for command, want := range map[string]struct{ names, kind, first string }{
		"get clusters": {"managedcluster.cluster.open-cluster-management.io/c1\nmanagedcluster.cluster.open-cluster-management.io/c2\n",
			"ManagedCluster", "c1"},
		"get clusters --clusterset production": {"managedcluster.cluster.open-cluster-management.io/c1\n", "ManagedCluster", "c1"},
		"get clustersets": {"managedclusterset.cluster.open-cluster-management.io/empty\n" +
			"managedclusterset.cluster.open-cluster-management.io/production\n", "ManagedClusterSet", "empty"},
		"members production": {"clustersetmember.view.clusterhub.dev/c1.production\n", "ClusterSetMember", "c1.production"},
	} {
		args := strings.Fields(command)
		if got := mustRun(t, config, append(args, "-o", "name")...); got != want.names {
			t.Errorf("%s -o name: %q, want %q", command, got, want.names)
		}
		var list struct {
			Kind, APIVersion string
			Items            []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal([]byte(mustRun(t, config, append(args, "-o", "json")...)), &list); err != nil {
			t.Errorf("%s -o json: %v", command, err)
		} else if list.Kind != want.kind+"List" || list.APIVersion == "" || len(list.Items) == 0 || list.Items[0].Kind != want.kind ||
			list.Items[0].Name != want.first {
			t.Errorf("%s -o json: %+v", command, list)
		}
		says(t, mustRun(t, config, append(args, "-o", "yaml")...), "kind: "+want.kind+"\n", "name: "+want.first+"\n")
		if got := mustRun(t, config, append(args, "-o", "jsonpath={.items[0].metadata.name}")...); got != want.first {
			t.Errorf("%s -o jsonpath: %q", command, got)
		}
	}
}

// TestGet_ReadsAllPages verifies that all pages of a list are read.
func TestGet_ReadsAllPages(t *testing.T) {
	s, config := newFleet(t)
	s.pageSize = 1
	s.put(newMember("production", "c2", "env=prod"))
	if got := mustRun(t, config, "get", "clusters", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("it prints %q", got)
	}
	s.wantAsked("GET "+clustersPath+"?limit=500", "GET "+clustersPath+"?continue=1&limit=500")
	if got := mustRun(t, config, "members", "production", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("it prints %q", got)
	}
	s.wantAsked("GET "+setsPath+"/production", "GET "+membersPath+"?fieldSelector=spec.clusterSet%3Dproduction&limit=500",
		"GET "+membersPath+"?continue=1&fieldSelector=spec.clusterSet%3Dproduction&limit=500")
}

// TestGet_HubDeterminesMembers verifies that the hub determines the members of a set. The selector only reduces the number of clusters that are
// listed.
func TestGet_HubDeterminesMembers(t *testing.T) {
	s, config := newFleet(t)
	s.put(newCluster("c3", map[string]string{"env": "prod"})) // the selector matches it, and it is not a member yet
	if got := mustRun(t, config, "get", "clusters", "--clusterset", "production", "-o", "name"); !strings.HasSuffix(got, "/c1\n") || strings.Contains(got, "c3") {
		t.Errorf("it prints %q", got)
	}
	s.wantAsked("GET "+setsPath+"/production", "GET "+membersPath+"*", "GET "+clustersPath+"?labelSelector=env%3Dprod&limit=500")
}

func TestGet_Empty(t *testing.T) {
	config := kubeconfig(t, map[string]*fakeServer{"hub": newServer(t, newSet("empty"))})
	for command, want := range map[string]string{
		"get clusters": "No clusters found.\n", "get clusters --clusterset empty": "No clusters found.\n",
		"members empty": "The set empty has no members.\n",
	} {
		stdout, stderr, err := run(t, config, strings.Fields(command)...)
		if err != nil || stdout != "" || stderr != want {
			t.Errorf("%s: %v, %q, %q", command, err, stdout, stderr)
		}
		// Programs get an empty list.
		says(t, mustRun(t, config, append(strings.Fields(command), "-o", "json")...), `"items": []`)
	}
}

// TestGet_ShowsUnknown verifies that what the user may not see is shown as unknown.
func TestGet_ShowsUnknown(t *testing.T) {
	s, config := newFleet(t)
	s.refuse("GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings", forbidden("managedclustersetbindings", "list"))
	if got := squeeze(mustRun(t, config, "get", "clustersets")); !strings.Contains(got, "production <unknown> 1 ManagedClusters") {
		t.Errorf("it prints %s", got)
	}
	s.refuse("GET "+clustersPath, forbidden("managedclusters", "list"))
	_, _, err := run(t, config, "get", "clusters", "--clusterset", "production")
	if err == nil {
		t.Fatal("it lists the clusters")
	}
	says(t, err.Error(), "cannot list", "(kubectl hub members production shows those that you can see)")
}

// TestGet_EscapesControlCharacters verifies that a message of a condition, which other users may have written, cannot move the cursor of a user
// who reads a set.
func TestGet_EscapesControlCharacters(t *testing.T) {
	set := newSet("s")
	set.Status.Conditions = []metav1.Condition{{Type: v1beta2.ManagedClusterSetConditionEmpty, Message: "\x1b[2J\x1b[1;1Hempty"}}
	config := kubeconfig(t, map[string]*fakeServer{"hub": newServer(t, set)})
	if got := mustRun(t, config, "get", "clustersets"); strings.Contains(got, "\x1b") || !strings.Contains(got, "empty") {
		t.Errorf("it prints %q", got)
	}
}
