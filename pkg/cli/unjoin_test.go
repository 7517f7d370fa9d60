// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	jobsPath = "/apis/batch/v1/namespaces/" + registration.AgentNamespace + "/jobs"
	jobPath  = jobsPath + "/" + unjoinJob
)

// newJoined returns a cluster that has joined a hub, in the state after join and the registration of its agent. Jobs end with the given status.
func newJoined(t *testing.T, status batchv1.JobStatus) (*fakeServer, string) {
	t.Helper()
	_, cluster, config, args := newJoining(t)
	if _, _, err := run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.put(newIdentity(t, "c1", "https://hub"))
	leavesBy(t, cluster, status)
	cluster.asked = nil
	return cluster, config
}

// leavesBy makes the Jobs of a cluster end with a status.
func leavesBy(t *testing.T, cluster *fakeServer, status batchv1.JobStatus) {
	t.Helper()
	cluster.on["POST "+jobsPath] = func(_ http.ResponseWriter, _ []byte) bool {
		// The test checks the Job when it has been created.
		cluster.on["GET "+jobPath] = func(w http.ResponseWriter, _ []byte) bool {
			job := cluster.get(jobPath)
			if job == nil {
				return false
			}
			done := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: unjoinJob}, Status: status}
			object, err := asMap(done)
			if err == nil {
				writeJSON(w, http.StatusOK, object)
			}
			return err == nil
		}
		return false
	}
}

// changes returns the requests to a server that change something, in a short form.
func (s *fakeServer) changes() (all []string) {
	for _, request := range s.asked {
		method, path, _ := strings.Cut(request, " ")
		path, _, _ = strings.Cut(path, "?")
		if method != "GET" {
			all = append(all, method+" "+nameOf(path))
		}
	}
	return all
}

func TestUnjoin_NotifiesHubAndDeletesAll(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
	stdout, stderr, err := run(t, config, "unjoin", "--cluster-name", "c1")
	if err != nil || stdout != "Cluster c1 has left its hub. Its ManagedCluster still exists; an admin can delete it:\n\n"+
		"    kubectl delete managedcluster c1\n" {
		t.Fatalf("%v: %q", err, stdout)
	}
	if left := cluster.paths(); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
	says(t, stderr, "deployment/"+deploy.AgentName+" deleted\n", "namespace/"+registration.AgentNamespace+" deleted\n")
	// First the agent is stopped, then the Job notifies the hub, and then the agent is deleted before the objects that it needs.
	want := []string{"PATCH " + deploy.AgentName, "DELETE " + unjoinJob, "POST jobs", "DELETE " + unjoinJob, "DELETE " + deploy.AgentName,
		"DELETE " + registration.HubKubeconfigSecret}
	if got := cluster.changes(); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "DELETE "+registration.AgentNamespace {
		t.Errorf("it changes %q, want first %q, and the namespace last", got, want)
	}
	if got := cluster.bodies["PATCH "+deploymentPath]; got != `{"spec":{"replicas":0}}` {
		t.Errorf("the agent is scaled by %s", got)
	}
	job := &batchv1.Job{}
	if err := json.Unmarshal([]byte(cluster.bodies["POST "+jobsPath]), job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if container.Image != "clusterhub/hub-agent:v1.2.3" || !slices.Contains(container.Args, "unjoin") || job.Spec.Template.Spec.ServiceAccountName != registration.AgentServiceAccount {
		t.Errorf("the Job has the pod %+v", job.Spec.Template.Spec)
	}
	if got := mustRun(t, config, "unjoin", "--cluster-name", "c1"); got != "No agent found on this cluster.\n" {
		t.Errorf("again: %q", got)
	}
	says(t, mustRun(t, config, "unjoin", "--cluster-name", "c1", "-o", "json"), `"left": false`, `"removed": false`)
}

func TestUnjoin_NeverAccepted(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{})
	cluster.put(newIdentity(t, "c1", "")) // no identity yet, so there is nothing to leave
	stdout, _, err := run(t, config, "unjoin", "--cluster-name", "c1", "-o", "json")
	if err != nil || cluster.bodies["POST "+jobsPath] != "" {
		t.Errorf("%v, and a Job was made: %s", err, cluster.bodies["POST "+jobsPath])
	}
	says(t, stdout, `"left": false`, `"removed": true`)
	if left := cluster.paths(); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
}

// TestUnjoin_RetainsObjectsOfOthers verifies that objects of other owners stay, and so does the namespace that contains them.
func TestUnjoin_RetainsObjectsOfOthers(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "theirs"}}
	cluster.put(theirs)
	cluster.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace}})
	stdout, _, err := run(t, config, "unjoin", "--cluster-name", "c1")
	if err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if left, want := cluster.paths(), []string{"/api/v1/namespaces/" + registration.AgentNamespace, agentSecrets + "theirs"}; !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
}

// TestUnjoin_HubNotNotified verifies that an agent that could not leave continues to run, unless --force is set.
func TestUnjoin_HubNotNotified(t *testing.T) {
	pod := func(message string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "p", Labels: map[string]string{deploy.AgentLabel: unjoinJob}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: message}}}}}}
	}
	failed := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}
	for name, test := range map[string]struct {
		status batchv1.JobStatus
		change func(*fakeServer)
		want   string
		// stays reports whether the agent is never stopped.
		stays bool
	}{
		"the Job fails": {failed, func(s *fakeServer) { s.put(pod("I1 trying\nF2 connection refused\x1b[2J")) },
			`the Job hub-agent-unjoin failed: its container has terminated: F2 connection refused\x1b[2J`, false},
		"the Job does not end": {batchv1.JobStatus{}, nil, "waiting for the cluster to leave the hub: interrupted: its pod does not exist yet", false},
		"no Job may be made":   {batchv1.JobStatus{}, func(s *fakeServer) { s.refuse("POST "+jobsPath, forbidden("jobs", "create")) }, "creating Job hub-agent-unjoin", false},
		"it may not be scaled": {batchv1.JobStatus{}, func(s *fakeServer) { s.refuse("PATCH "+deploymentPath, forbidden("deployments", "patch")) }, "scaling the agent to 0", true},
		"no Deployment": {batchv1.JobStatus{}, func(s *fakeServer) {
			s.refuse("GET "+deploymentPath, apierrors.NewNotFound(corev1.Resource("deployments"), "hub-agent"))
		},
			"the agent's Deployment " + registration.AgentNamespace + "/hub-agent does not exist: run kubectl hub join again, and then this command", true},
		"another's Deployment": {batchv1.JobStatus{}, func(s *fakeServer) { d := s.get(deploymentPath); d.SetLabels(nil); s.putRaw(d) },
			"was not created by kubectl hub", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, config := newJoined(t, test.status)
			if test.change != nil {
				test.change(cluster)
			}
			_, _, err := runIn(cluster.interruptedAt("GET /api/v1/namespaces/"+registration.AgentNamespace+"/pods", 5), t, config, "unjoin", "--cluster-name", "c1")
			if err == nil {
				t.Fatal("it goes on")
			}
			says(t, command.ErrorLine(err), "notifying the hub that the cluster leaves: ", test.want, "(--force removes the agent anyway)")
			if d := cluster.get(deploymentPath); d == nil {
				t.Error("the agent is gone")
			} else if replicas, _, _ := nestedNumber(d.Object, "spec", "replicas"); replicas != 1 {
				t.Errorf("the agent has %v replicas", replicas)
			}
			if scaled := slices.Contains(cluster.changes(), "PATCH "+deploy.AgentName); scaled == test.stays && cluster.on["PATCH "+deploymentPath] == nil {
				t.Errorf("the agent was stopped: %t", scaled)
			}
			if cluster.get(identitySecret) == nil || cluster.get(jobPath) != nil {
				t.Errorf("there are %q", cluster.paths())
			}
		})
	}
	cluster, config := newJoined(t, failed)
	cluster.put(pod("no route"))
	stdout, stderr, err := run(t, config, "unjoin", "--cluster-name", "c1", "--force")
	if err != nil {
		t.Fatal(err)
	}
	says(t, stdout, "The agent is removed. The hub was not notified; if it has a ManagedCluster c1, delete it there.")
	says(t, stderr, "Warning: the hub was not notified that the cluster leaves: the Job hub-agent-unjoin failed")
	if left := cluster.paths(); len(left) != 1 || nameOf(left[0]) != "p" { // the garbage collector deletes the pod of the Job
		t.Errorf("it has left %q", left)
	}
}

func TestUnjoin_InvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakeServer)
		name   string
		want   string
	}{
		"another cluster": {nil, "c2", "this cluster is not c2 on its hub, but c1 on https://hub: check --context and --cluster-name"},
		"no right":        {func(s *fakeServer) { s.refuse("GET "+identitySecret, forbidden("secrets", "get")) }, "c1", "cannot get"},
		"no credentials":  {func(s *fakeServer) { s.refuse("GET "+identitySecret, apierrors.NewUnauthorized("no")) }, "c1", "does not accept the credentials (401): check --context and --kubeconfig"},
		"no right to remove": {func(s *fakeServer) {
			s.put(newIdentity(t, "c1", ""))
			s.refuse("DELETE "+deploymentPath, forbidden("deployments", "delete"))
		}, "c1",
			"deleting Deployment " + registration.AgentNamespace + "/hub-agent"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
			before := cluster.paths()
			if test.change != nil {
				test.change(cluster)
			}
			stdout, _, err := run(t, config, "unjoin", "--cluster-name", test.name)
			if err == nil || stdout != "" {
				t.Fatalf("it goes on: %v, %q", err, stdout)
			}
			says(t, command.ErrorLine(err), test.want)
			if after := cluster.paths(); !slices.Equal(after, before) {
				t.Errorf("there are %q", after)
			}
		})
	}
	_, _, err := run(t, addDead(t), "unjoin", "--cluster-name", "c1", "--context", "dead")
	if err == nil {
		t.Fatal("it goes on")
	}
	says(t, command.ErrorLine(err), "the managed cluster https://127.0.0.1:1 cannot be reached", "check --context and --kubeconfig")
}
