// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func newAccepted(name string, conditions ...metav1.Condition) *clusterv1.ManagedCluster {
	c := newCluster(name, nil)
	c.UID, c.Spec.HubAcceptsClient, c.Status.Conditions = "uid-of-", true, conditions
	return c
}

func TestDeny(t *testing.T) {
	s := newServer(t, newAccepted("c1"), newCluster("c2", nil))
	config := kubeconfig(t, map[string]*fakeServer{"hub": s})
	const want = "set hubAcceptsClient to false for managed cluster c1\nhubAcceptsClient is not set for managed cluster c2\n"
	if got := mustRun(t, config, "deny", "--clusters", "c2,c1", "-c", "c1"); got != want {
		t.Errorf("it says %q", got)
	}
	// The patch names the UID of the cluster that was read, and changes no other field.
	if got := s.bodies["PATCH "+clustersPath+"/c1"]; got != `{"metadata":{"uid":"uid-of-"},"spec":{"hubAcceptsClient":false}}` {
		t.Errorf("it sends %s", got)
	}
	if s.bodies["PATCH "+clustersPath+"/c2"] != "" {
		t.Error("it changes what is denied already")
	}
	stdout, _, err := run(t, config, "deny", "--clusters", "c1,nothing", "-o", "json")
	if err == nil || !strings.Contains(err.Error(), "nothing") || !strings.Contains(stdout, `"changed": false`) {
		t.Errorf("one that is not there: %v, %q", err, stdout)
	}
	if _, _, err := run(t, config, "deny"); err == nil || !strings.Contains(err.Error(), "--clusters must name the clusters to deny") {
		t.Errorf("of no cluster: %v", err)
	}
	s.put(newAccepted("c1"))
	s.refuse("PATCH "+clustersPath+"/c1", forbidden("managedclusters/accept", "update"))
	if stdout, _, err := run(t, config, "deny", "-c", "c1"); err == nil || stdout != "" {
		t.Errorf("what is refused: %v, %q", err, stdout)
	}
}

// TestDeny_Waits verifies that deny --wait ends when the hub reports that the permissions are revoked, and that it prints what it waits for.
func TestDeny_Waits(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: registration.ConditionHubAccepted, Status: status, Reason: reason, Message: message}
	}
	accepted := is(metav1.ConditionTrue, registration.ReasonAccepted, "")
	s := newServer(t, newAccepted("c1", accepted))
	config := kubeconfig(t, map[string]*fakeServer{"hub": s})
	looks := 0
	s.on["GET "+clustersPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
		looks++
		if looks == 4 {
			s.put(newAccepted("c1", is(metav1.ConditionFalse, registration.ReasonDenied, "")))
		}
		return false
	}
	if _, _, err := run(t, config, "deny", "-c", "c1", "--wait"); err != nil || looks != 4 {
		t.Errorf("%v after %d looks", err, looks)
	}
	for want, condition := range map[string]metav1.Condition{
		"hub-controller-manager has not revoked its rights yet": accepted,
		"no way to AWS": is(metav1.ConditionFalse, "Error", "no way to AWS"),
	} {
		s := newServer(t, newAccepted("c1", condition))
		_, _, err := runIn(s.interruptedAt("GET "+clustersPath+"/c1", 3), t, kubeconfig(t, map[string]*fakeServer{"hub": s}), "deny", "-c", "c1", "--wait")
		if err == nil {
			t.Fatalf("with %+v it goes on", condition)
		}
		says(t, err.Error(), "waiting for managed cluster c1: interrupted: "+want)
	}
}

func TestDeleteCluster(t *testing.T) {
	available := metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue}
	s := newServer(t, newAccepted("c1", available), newCluster("c2", nil))
	config := kubeconfig(t, map[string]*fakeServer{"hub": s})
	stdout, stderr, err := run(t, config, "delete", "cluster", "c1")
	if err != nil || stdout != "managedcluster \"c1\" deleted\n" {
		t.Errorf("%v: %q", err, stdout)
	}
	says(t, stderr, "Warning: the agent of managed cluster c1 still runs: run kubectl hub unjoin --cluster-name c1 on the cluster to remove it")
	says(t, s.bodies["DELETE "+clustersPath+"/c1"], `"preconditions":{"uid":"uid-of-"}`)
	if got := mustRun(t, config, "delete", "clusters", "c1", "-o", "json"); !strings.Contains(got, `"changed": false`) {
		t.Errorf("again, it says %q", got)
	}
	if s.get(clustersPath+"/c2") == nil {
		t.Error("the other cluster is gone, too")
	}

	// A deletion takes as long as the hub's finalizers.
	going := newCluster("c3", nil)
	going.Finalizers = []string{"example.com/a"}
	s.put(going)
	s.on["DELETE "+clustersPath+"/c3"] = func(w http.ResponseWriter, _ []byte) bool {
		writeJSON(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		return true
	}
	_, _, err = runIn(s.interruptedAt("GET "+clustersPath+"/c3", 4), t, config, "delete", "cluster", "c3", "--wait")
	if err == nil {
		t.Fatal("it does not wait")
	}
	says(t, err.Error(), "waiting for managedcluster c3: interrupted: it has the finalizers example.com/a")

	// A user who may not get the cluster may delete it.
	s.refuse("GET "+clustersPath+"/c2", forbidden("managedclusters", "get"))
	if got := mustRun(t, config, "delete", "cluster", "c2"); got != "managedcluster \"c2\" deleted\n" {
		t.Errorf("it says %q", got)
	}
}
