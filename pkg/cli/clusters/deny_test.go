// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func newAccepted(name string, conditions ...metav1.Condition) *clusterv1.ManagedCluster {
	c := clitest.NewCluster(name, nil)
	c.UID, c.Spec.HubAcceptsClient, c.Status.Conditions = "uid-of-", true, conditions
	return c
}

func TestDeny(t *testing.T) {
	s := clitest.NewServer(t, newAccepted("c1"), clitest.NewCluster("c2", nil))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	const want = "set hubAcceptsClient to false for managed cluster c1\nhubAcceptsClient is not set for managed cluster c2\n"
	if got := clitest.MustRun(t, config, "deny", "--clusters", "c2,c1", "-c", "c1"); got != want {
		t.Errorf("it says %q", got)
	}
	// The patch names the UID of the cluster that was read, and changes no other field.
	if got := s.Bodies["PATCH "+clitest.ClustersPath+"/c1"]; got != `{"metadata":{"uid":"uid-of-"},"spec":{"hubAcceptsClient":false}}` {
		t.Errorf("it sends %s", got)
	}
	if s.Bodies["PATCH "+clitest.ClustersPath+"/c2"] != "" {
		t.Error("it changes what is denied already")
	}
	stdout, _, err := clitest.Run(t, config, "deny", "--clusters", "c1,nothing", "-o", "json")
	if err == nil || !strings.Contains(err.Error(), "nothing") || !strings.Contains(stdout, `"changed": false`) {
		t.Errorf("one that is not there: %v, %q", err, stdout)
	}
	if _, _, err := clitest.Run(t, config, "deny"); err == nil || !strings.Contains(err.Error(), "--clusters must name the clusters to deny") {
		t.Errorf("of no cluster: %v", err)
	}
	s.Put(newAccepted("c1"))
	s.Refuse("PATCH "+clitest.ClustersPath+"/c1", clitest.Forbidden("managedclusters/accept", "update"))
	if stdout, _, err := clitest.Run(t, config, "deny", "-c", "c1"); err == nil || stdout != "" {
		t.Errorf("what is refused: %v, %q", err, stdout)
	}
}

// TestDeny_Waits verifies that deny --wait ends when the hub reports that the permissions are revoked, and that it prints what it waits for.
func TestDeny_Waits(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: registration.ConditionHubAccepted, Status: status, Reason: reason, Message: message}
	}
	accepted := is(metav1.ConditionTrue, registration.ReasonAccepted, "")
	s := clitest.NewServer(t, newAccepted("c1", accepted))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	looks := 0
	s.On["GET "+clitest.ClustersPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
		looks++
		if looks == 4 {
			s.Put(newAccepted("c1", is(metav1.ConditionFalse, registration.ReasonDenied, "")))
		}
		return false
	}
	if _, _, err := clitest.Run(t, config, "deny", "-c", "c1", "--wait"); err != nil || looks != 4 {
		t.Errorf("%v after %d looks", err, looks)
	}
	for want, condition := range map[string]metav1.Condition{
		"hub-controller-manager has not revoked its rights yet": accepted,
		"no way to AWS": is(metav1.ConditionFalse, "Error", "no way to AWS"),
	} {
		s := clitest.NewServer(t, newAccepted("c1", condition))
		_, _, err := clitest.RunIn(s.InterruptedAt("GET "+clitest.ClustersPath+"/c1", 3), t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "deny", "-c", "c1", "--wait")
		if err == nil {
			t.Fatalf("with %+v it goes on", condition)
		}
		clitest.Says(t, err.Error(), "waiting for managed cluster c1: interrupted: "+want)
	}
}

func TestDeleteCluster(t *testing.T) {
	available := metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue}
	s := clitest.NewServer(t, newAccepted("c1", available), clitest.NewCluster("c2", nil))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	stdout, stderr, err := clitest.Run(t, config, "delete", "cluster", "c1")
	if err != nil || stdout != "managedcluster \"c1\" deleted\n" {
		t.Errorf("%v: %q", err, stdout)
	}
	clitest.Says(t, stderr, "Warning: the agent of managed cluster c1 still runs: run kubectl hub unjoin --cluster-name c1 on the cluster to remove it")
	clitest.Says(t, s.Bodies["DELETE "+clitest.ClustersPath+"/c1"], `"preconditions":{"uid":"uid-of-"}`)
	if got := clitest.MustRun(t, config, "delete", "clusters", "c1", "-o", "json"); !strings.Contains(got, `"changed": false`) {
		t.Errorf("again, it says %q", got)
	}
	if s.Get(clitest.ClustersPath+"/c2") == nil {
		t.Error("the other cluster is gone, too")
	}

	// A deletion takes as long as the hub's finalizers.
	going := clitest.NewCluster("c3", nil)
	going.Finalizers = []string{"example.com/a"}
	s.Put(going)
	s.On["DELETE "+clitest.ClustersPath+"/c3"] = func(w http.ResponseWriter, _ []byte) bool {
		clitest.WriteJSON(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		return true
	}
	_, _, err = clitest.RunIn(s.InterruptedAt("GET "+clitest.ClustersPath+"/c3", 4), t, config, "delete", "cluster", "c3", "--wait")
	if err == nil {
		t.Fatal("it does not wait")
	}
	clitest.Says(t, err.Error(), "waiting for managedcluster c3: interrupted: it has the finalizers example.com/a")

	// A user who may not get the cluster may delete it.
	s.Refuse("GET "+clitest.ClustersPath+"/c2", clitest.Forbidden("managedclusters", "get"))
	if got := clitest.MustRun(t, config, "delete", "cluster", "c2"); got != "managedcluster \"c2\" deleted\n" {
		t.Errorf("it says %q", got)
	}
}
