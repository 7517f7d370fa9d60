// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const failingWork = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: web, namespace: CLUSTER}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: web}}
`

// silent is the status of a cluster whose agent has stopped.
const silent = `{"status": {"conditions": [
	{"type": "ManagedClusterJoined", "status": "True", "reason": "ManagedClusterJoined", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
	{"type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "ManagedClusterLeaseUpdateStopped", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`

// TestTree_ShowsWhatUserMaySee runs kubectl hub tree and top on a real hub: as an admin, as a member of a team who may get one set and list nothing,
// and as a user without rights. The test acts as the agent and as registration.
func TestTree_ShowsWhatUserMaySee(t *testing.T) {
	h := harness.Hub(t)
	set, names := harness.NewFleet(t, 3)
	admin := harness.Plugin{Kubeconfig: h.AdminKubeconfig()}
	admin.Must(t, "accept", "--clusters", names[0], "--skip-approve-check")
	harness.MustKubectl(t, "", "create", "namespace", names[0])
	t.Cleanup(func() { _, _ = harness.Kubectl(t, "", "delete", "namespace", names[0], "--wait=false") })
	harness.MustKubectl(t, "", "patch", "managedcluster", names[0], "--subresource=status", "--type=merge", "-p", silent)
	harness.MustKubectl(t, strings.ReplaceAll(failingWork, "CLUSTER", names[0]), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = harness.Kubectl(t, "", "delete", "manifestwork", "web", "-n", names[0]) })
	status, err := json.Marshal(map[string]any{"status": workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, Reason: "AppliedManifestWorkFailed", ObservedGeneration: 1, LastTransitionTime: metav1.Now()},
			{Type: workv1.WorkAvailable, Status: metav1.ConditionFalse, Reason: "ResourcesNotAvailable", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "web", Name: "settings"},
			Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Reason: "AppliedManifestFailed", Message: "no namespace web",
				LastTransitionTime: metav1.Now()}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	harness.MustKubectl(t, "", "patch", "manifestwork", "web", "-n", names[0], "--subresource=status", "--type=merge", "-p", string(status))

	tree := admin.Must(t, "tree", "set", set)
	harness.Contains(t, tree, "3 clusters, 1 unknown, 2 on the way", "ManagedCluster/"+names[0], "ManagedClusterLeaseUpdateStopped", "NotAccepted", "ManifestWork/web", "AppliedManifestWorkFailed",
		"Manifest/ConfigMap web/settings", "no namespace web")
	if strings.Contains(tree, "Not seen") {
		t.Errorf("an admin is not shown all:\n%s", tree)
	}
	harness.Contains(t, admin.Must(t, "tree", "cluster", names[0]), "Condition/", "Namespace/"+names[0], "3 sets: default, ", set, "ManifestWork/web")
	harness.Contains(t, admin.Must(t, "top", "clusters", "--limit=0"), names[0], names[2])
	harness.Contains(t, admin.Must(t, "top", "agents", "--limit=0"), names[0])

	// The user may get the set. The output shows its members, and states that everything else is missing.
	dana := harness.User(t, harness.Rule("get", "managedclustersets", set))
	tree = admin.Must(t, "tree", "set", set, "--as", dana)
	harness.Contains(t, tree, "3 clusters, 1 unknown, 2 on the way", "ManagedCluster/"+names[0], "Not seen: the works on 3 clusters, such as ")
	if strings.Contains(tree, "ManifestWork/") || strings.Contains(tree, "settings") {
		t.Errorf("it shows\n%s", tree)
	}
	harness.Contains(t, admin.Must(t, "tree", "cluster", names[0], "--as", dana), "ManagedClusterSet/"+set, "Not seen: the conditions of the cluster: you cannot get")
	if sets := strings.Fields(admin.Must(t, "top", "sets", "--as", dana)); strings.Count(strings.Join(sets, " "), " ") != 6+6 {
		t.Errorf("top sets shows %q, want one set", sets)
	}
	harness.Contains(t, admin.Must(t, "top", "clusters", "--as", dana), names[0], names[1], names[2])

	// A user without rights sees nothing.
	nobody := harness.User(t)
	for _, args := range [][]string{{"tree", "set", set}, {"tree", "cluster", names[0]}, {"top", "clusters"}, {"top", "sets"}} {
		stdout, stderr, err := admin.Run(t, append(args, "--as", nobody)...)
		if err == nil || stdout != "" || strings.Contains(stderr, names[1]) {
			t.Errorf("%q shows %q, %q", args, stdout, stderr)
		}
	}
}
