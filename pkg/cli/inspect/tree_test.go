// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
)

const (
	listWorks    = "GET /apis/work.open-cluster-management.io/v1/manifestworks"
	listClusters = "GET /apis/cluster.open-cluster-management.io/v1/managedclusters"
	viewClusters = "GET /apis/clusterview.open-cluster-management.io/v1/managedclusters"
)

// newTree returns a hub with a set of 30 available clusters, of which c01 has a work with a failing manifest, and one that does not respond.
func newTree(t *testing.T) (*clitest.Server, string) {
	t.Helper()
	member := func(name string, available metav1.ConditionStatus) *viewv1alpha1.ClusterSetMember {
		m := clitest.NewMember("s", name, "env=prod")
		m.Status.Accepted, m.Status.Available = true, available
		return m
	}
	s := clitest.NewServer(t, clitest.NewSet("s"), clitest.NewSet("empty"), member("silent", "Unknown"), clitest.NewWork("silent", "web", 2, "True", "True"),
		clitest.Failing(clitest.NewWork("c01", "web", 2, "True", "False"), workv1.ManifestAvailable, "0 of 1\x1b[2J"), clitest.NewWork("c02", "web", 2, "True", "True"),
		clitest.NewWork("elsewhere", "web", 2, "False", "False"))
	for i := range 30 {
		s.Put(member(fmt.Sprintf("c%02d", i), "True"))
	}
	s.PageSize = 7
	s.Refuse(listClusters, clitest.Forbidden("managedclusters", "list"))
	s.Refuse(viewClusters, clitest.Forbidden("managedclusters", "list"))
	return s, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

func TestTreeSet(t *testing.T) {
	s, config := newTree(t)
	got := clitest.MustRun(t, config, "tree", "set", "s")
	clitest.Says(t, clitest.Squeeze(got), `NAME STATE SINCE REASON MESSAGE
ManagedClusterSet/s Healthy - - 31 clusters, 30 available, 1 unknown
├─ManagedCluster/c01 Healthy - - -
│ └─ManifestWork/web Unhealthy`, `Manifest/Deployment web/nginx Unhealthy - - 0 of 1\x1b[2J`, "├─ManagedCluster/silent Unknown", "└─ManifestWork/web Unknown",
		"└─29 clusters available: c00, c02, c03, …", "Not seen: the time and reason of unavailable clusters: ")
	if strings.Contains(got, "elsewhere") || strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 9 {
		t.Errorf("it prints\n%s", got)
	}
	if got := clitest.Squeeze(clitest.MustRun(t, config, "tree", "set", "s", "--all")); strings.Count(got, "├─ManagedCluster/")+strings.Count(got, "└─ManagedCluster/") != 31 {
		t.Errorf("--all prints\n%s", got)
	}
	if got := clitest.Squeeze(clitest.MustRun(t, config, "tree", "set", "empty")); !strings.HasSuffix(got, "ManagedClusterSet/empty Healthy - - 0 clusters") {
		t.Errorf("of a set without clusters it prints\n%s", got)
	}
	if _, _, err := clitest.Run(t, config, "tree", "set", "none"); err == nil || !strings.Contains(err.Error(), `"none" not found`) {
		t.Errorf("of a set that is not there: %v", err)
	}
	// A user who may list no works is shown the members, and one line about the missing permission.
	s.Refuse(listWorks, clitest.Forbidden("manifestworks", "list"))
	for i := range 30 {
		s.Refuse("GET "+clitest.WorksPath+fmt.Sprintf("c%02d/manifestworks", i), clitest.Forbidden("manifestworks", "list"))
	}
	got = clitest.Squeeze(clitest.MustRun(t, config, "tree", "set", "s"))
	clitest.Says(t, got, "30 clusters available: c00, c01, c02, …", "└─ManifestWork/web Unknown", `Not seen: the works on 30 clusters, such as c00: you cannot list resource "manifestworks"`)
	if strings.Count(got, "Not seen") != 2 {
		t.Errorf("it prints\n%s", got)
	}
	// Any other error is returned.
	s.Refuse(listWorks, apierrors.NewInternalError(fmt.Errorf("broken")))
	if _, _, err := clitest.Run(t, config, "tree", "set", "s"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("it says %v", err)
	}
}

func TestTree_JSONAndYAML(t *testing.T) {
	_, config := newTree(t)
	var asJSON, asYAML tree.Node
	if err := json.Unmarshal([]byte(clitest.MustRun(t, config, "tree", "set", "s", "-o", "json")), &asJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(clitest.MustRun(t, config, "tree", "set", "s", "-o", "yaml")), &asYAML); err != nil {
		t.Fatal(err)
	}
	for _, root := range []tree.Node{asJSON, asYAML} {
		if len(root.Children) != 31 || root.Worst() != inspect.Unhealthy || len(root.Unseen) != 1 {
			t.Errorf("it prints %+v", root)
		}
	}
}

func TestTreeCluster(t *testing.T) {
	s, config := newTree(t)
	// The user may not get the cluster, but may see it as a member of a set.
	one := "GET /apis/cluster.open-cluster-management.io/v1/managedclusters/silent"
	s.Refuse(one, clitest.Forbidden("managedclusters", "list"))
	s.Refuse(strings.Replace(one, "cluster.", "clusterview.", 1), clitest.Forbidden("managedclusters", "list"))
	s.Refuse("GET /apis/coordination.k8s.io/v1/namespaces/silent/leases/managed-cluster-lease", clitest.Forbidden("leases", "list"))
	s.Refuse("GET /api/v1/namespaces/silent", clitest.Forbidden("namespaces", "list"))
	s.Refuse("GET /apis/clusters.openmcp.cloud/v1alpha1/namespaces/silent/accessrequests", clitest.Forbidden("accessrequests", "list"))
	got := clitest.Squeeze(clitest.MustRun(t, config, "tree", "cluster", "silent"))
	clitest.Says(t, got, "ManagedCluster/silent Unknown", "├─ManagedClusterSet/s Healthy - - selects env=prod", "└─ManifestWork/web Unknown", "Stale",
		"Not seen: the conditions of the cluster: ", "Not seen: when the agent last renewed its lease: ", "Not seen: the namespace of the cluster on the hub: ",
		"Not seen: the access requests: ")
	// Nothing is shown of a cluster that is in none of the user's sets.
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1/managedclusters/hidden", clitest.Forbidden("managedclusters", "list"))
	s.Refuse("GET /apis/clusterview.open-cluster-management.io/v1/managedclusters/hidden", clitest.Forbidden("managedclusters", "list"))
	if stdout, _, err := clitest.Run(t, config, "tree", "cluster", "hidden"); err == nil || stdout != "" || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("it says %v, %q", err, stdout)
	}
}

func TestTreePlacement(t *testing.T) {
	s, config := clitest.NewPlaced(t)
	works := func(cluster, label, placement string) *workv1.ManifestWork {
		w := clitest.NewWork(cluster, label, 2, "True", "True")
		w.Labels = map[string]string{work.ReplicaSetLabel: label, work.PlacementLabel: placement}
		return w
	}
	for _, w := range []*workv1.ManifestWork{works("c1", "dev.shop", "web"), works("c1", "other.shop", "web"), works("c2", "dev.shop", "web"), works("c1", "dev.late", "none")} {
		s.Put(w)
	}
	got := clitest.Squeeze(clitest.MustRun(t, config, "tree", "placement", "web", "-n", "dev", "--all"))
	clitest.Says(t, got, "Placement/dev/web Healthy - AllDecisionsScheduled", "├─ManagedCluster/c2 Unknown - NotSeen group 0 (canary): you may not see the cluster",
		"│ └─ManifestWork/dev.shop Healthy", "└─ManagedCluster/c3 Unknown - NotSeen group 1: ")
	if strings.Count(got, "ManifestWork/") != 2 {
		t.Errorf("it prints\n%s", got)
	}
	if _, _, err := clitest.Run(t, config, "tree", "placement", "nothing", "-n", "dev"); err == nil || !strings.Contains(err.Error(), "there is no placement nothing in the namespace dev") {
		t.Errorf("it says %v", err)
	}
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1beta1/namespaces/dev/placementdecisions", clitest.Forbidden("placementdecisions", "list"))
	clitest.Says(t, clitest.MustRun(t, config, "tree", "placement", "web", "-n", "dev"), "Placement/dev/web", "Not seen: the chosen clusters: ")
}
