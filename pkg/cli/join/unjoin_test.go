// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	jobsPath = "/apis/batch/v1/namespaces/" + registration.AgentNamespace + "/jobs"
	jobPath  = jobsPath + "/" + join.UnjoinJob
)

// newJoined returns a cluster that has joined a hub, in the state after join and the registration of its agent. Jobs end with the given status.
func newJoined(t *testing.T, status batchv1.JobStatus) (*clitest.Server, string) {
	t.Helper()
	_, cluster, config, args := newJoining(t)
	if _, _, err := clitest.Run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.Put(clitest.NewIdentity(t, "c1", "https://hub"))
	leavesBy(t, cluster, status)
	cluster.Asked = nil
	return cluster, config
}

// leavesBy makes the Jobs of a cluster end with a status.
func leavesBy(t *testing.T, cluster *clitest.Server, status batchv1.JobStatus) {
	t.Helper()
	cluster.On["POST "+jobsPath] = func(_ http.ResponseWriter, _ []byte) bool {
		// The test checks the Job when it has been created.
		cluster.On["GET "+jobPath] = func(w http.ResponseWriter, _ []byte) bool {
			job := cluster.Get(jobPath)
			if job == nil {
				return false
			}
			done := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: join.UnjoinJob}, Status: status}
			object, err := clitest.AsMap(done)
			if err == nil {
				clitest.WriteJSON(w, http.StatusOK, object)
			}
			return err == nil
		}
		return false
	}
}

func TestUnjoin_NotifiesHubAndDeletesAll(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
	stdout, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1")
	if err != nil || stdout != "Cluster c1 has left its hub. Its ManagedCluster still exists; an admin can delete it:\n\n"+
		"    kubectl delete managedcluster c1\n" {
		t.Fatalf("%v: %q", err, stdout)
	}
	if left := cluster.Paths(); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
	clitest.Says(t, stderr, "deployment/"+deploy.AgentName+" deleted\n", "namespace/"+registration.AgentNamespace+" deleted\n")
	// First the agent is stopped, then the Job notifies the hub, and then the agent is deleted before the objects that it needs.
	want := []string{"PATCH " + deploy.AgentName, "DELETE " + join.UnjoinJob, "POST jobs", "DELETE " + join.UnjoinJob, "DELETE " + deploy.AgentName,
		"DELETE " + registration.HubKubeconfigSecret}
	if got := cluster.Changes(); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "DELETE "+registration.AgentNamespace {
		t.Errorf("it changes %q, want first %q, and the namespace last", got, want)
	}
	if got := cluster.Bodies["PATCH "+clitest.DeploymentPath]; got != `{"spec":{"replicas":0}}` {
		t.Errorf("the agent is scaled by %s", got)
	}
	job := &batchv1.Job{}
	if err := json.Unmarshal([]byte(cluster.Bodies["POST "+jobsPath]), job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if container.Image != "clusterhub/hub-agent:v1.2.3" || !slices.Contains(container.Args, "unjoin") || job.Spec.Template.Spec.ServiceAccountName != registration.AgentServiceAccount {
		t.Errorf("the Job has the pod %+v", job.Spec.Template.Spec)
	}
	if got := clitest.MustRun(t, config, "unjoin", "--cluster-name", "c1"); got != "No agent found on this cluster.\n" {
		t.Errorf("again: %q", got)
	}
	clitest.Says(t, clitest.MustRun(t, config, "unjoin", "--cluster-name", "c1", "-o", "json"), `"left": false`, `"removed": false`)
}

func TestUnjoin_NeverAccepted(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{})
	cluster.Put(clitest.NewIdentity(t, "c1", "")) // no identity yet, so there is nothing to leave
	stdout, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "-o", "json")
	if err != nil || cluster.Bodies["POST "+jobsPath] != "" {
		t.Errorf("%v, and a Job was made: %s", err, cluster.Bodies["POST "+jobsPath])
	}
	clitest.Says(t, stdout, `"left": false`, `"removed": true`)
	if left := cluster.Paths(); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
}

// TestUnjoin_RetainsObjectsOfOthers verifies that objects of other owners stay, and so does the namespace that contains them.
func TestUnjoin_RetainsObjectsOfOthers(t *testing.T) {
	cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "theirs"}}
	cluster.Put(theirs)
	cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace}})
	stdout, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1")
	if err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if left, want := cluster.Paths(), []string{"/api/v1/namespaces/" + registration.AgentNamespace, clitest.AgentSecrets + "theirs"}; !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
}

// TestUnjoin_HubNotNotified verifies that an agent that could not leave continues to run, unless --force is set.
func TestUnjoin_HubNotNotified(t *testing.T) {
	pod := func(message string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "p", Labels: map[string]string{deploy.AgentLabel: join.UnjoinJob}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: message}}}}}}
	}
	failed := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}
	for name, test := range map[string]struct {
		ConditionStatus batchv1.JobStatus
		change          func(*clitest.Server)
		want            string
		// stays reports whether the agent is never stopped.
		stays bool
	}{
		"the Job fails": {failed, func(s *clitest.Server) { s.Put(pod("I1 trying\nF2 connection refused\x1b[2J")) },
			`the Job hub-agent-unjoin failed: its container has terminated: F2 connection refused\x1b[2J`, false},
		"the Job does not end": {batchv1.JobStatus{}, nil, "waiting for the cluster to leave the hub: interrupted: its pod does not exist yet", false},
		"no Job may be made":   {batchv1.JobStatus{}, func(s *clitest.Server) { s.Refuse("POST "+jobsPath, clitest.Forbidden("jobs", "create")) }, "creating Job hub-agent-unjoin", false},
		"it may not be scaled": {batchv1.JobStatus{}, func(s *clitest.Server) {
			s.Refuse("PATCH "+clitest.DeploymentPath, clitest.Forbidden("deployments", "patch"))
		}, "scaling the agent to 0", true},
		"no Deployment": {batchv1.JobStatus{}, func(s *clitest.Server) {
			s.Refuse("GET "+clitest.DeploymentPath, apierrors.NewNotFound(corev1.Resource("deployments"), "hub-agent"))
		},
			"the agent's Deployment " + registration.AgentNamespace + "/hub-agent does not exist: run kubectl hub join again, and then this command", true},
		"another's Deployment": {batchv1.JobStatus{}, func(s *clitest.Server) { d := s.Get(clitest.DeploymentPath); d.SetLabels(nil); s.PutRaw(d) },
			"was not created by kubectl hub", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, config := newJoined(t, test.ConditionStatus)
			if test.change != nil {
				test.change(cluster)
			}
			_, _, err := clitest.RunIn(cluster.InterruptedAt("GET /api/v1/namespaces/"+registration.AgentNamespace+"/pods", 5), t, config, "unjoin", "--cluster-name", "c1")
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, command.ErrorLine(err), "notifying the hub that the cluster leaves: ", test.want, "(--force removes the agent anyway)")
			if d := cluster.Get(clitest.DeploymentPath); d == nil {
				t.Error("the agent is gone")
			} else if replicas, _, _ := clitest.NestedNumber(d.Object, "spec", "replicas"); replicas != 1 {
				t.Errorf("the agent has %v replicas", replicas)
			}
			if scaled := slices.Contains(cluster.Changes(), "PATCH "+deploy.AgentName); scaled == test.stays && cluster.On["PATCH "+clitest.DeploymentPath] == nil {
				t.Errorf("the agent was stopped: %t", scaled)
			}
			if cluster.Get(clitest.IdentitySecret) == nil || cluster.Get(jobPath) != nil {
				t.Errorf("there are %q", cluster.Paths())
			}
		})
	}
	cluster, config := newJoined(t, failed)
	cluster.Put(pod("no route"))
	stdout, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--force")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, "The agent is removed. The hub was not notified; if it has a ManagedCluster c1, delete it there.")
	clitest.Says(t, stderr, "Warning: the hub was not notified that the cluster leaves: the Job hub-agent-unjoin failed")
	if left := cluster.Paths(); len(left) != 1 || clitest.NameOf(left[0]) != "p" { // the garbage collector deletes the pod of the Job
		t.Errorf("it has left %q", left)
	}
}

func TestUnjoin_InvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*clitest.Server)
		name   string
		want   string
	}{
		"another cluster": {nil, "c2", "this cluster is not c2 on its hub, but c1 on https://hub: check --context and --cluster-name"},
		"no right":        {func(s *clitest.Server) { s.Refuse("GET "+clitest.IdentitySecret, clitest.Forbidden("secrets", "get")) }, "c1", "cannot get"},
		"no credentials":  {func(s *clitest.Server) { s.Refuse("GET "+clitest.IdentitySecret, apierrors.NewUnauthorized("no")) }, "c1", "does not accept the credentials (401): check --context and --kubeconfig"},
		"no right to remove": {func(s *clitest.Server) {
			s.Put(clitest.NewIdentity(t, "c1", ""))
			s.Refuse("DELETE "+clitest.DeploymentPath, clitest.Forbidden("deployments", "delete"))
		}, "c1",
			"deleting Deployment " + registration.AgentNamespace + "/hub-agent"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, config := newJoined(t, batchv1.JobStatus{Succeeded: 1})
			before := cluster.Paths()
			if test.change != nil {
				test.change(cluster)
			}
			stdout, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", test.name)
			if err == nil || stdout != "" {
				t.Fatalf("it goes on: %v, %q", err, stdout)
			}
			clitest.Says(t, command.ErrorLine(err), test.want)
			if after := cluster.Paths(); !slices.Equal(after, before) {
				t.Errorf("there are %q", after)
			}
		})
	}
	_, _, err := clitest.Run(t, clitest.AddDead(t), "unjoin", "--cluster-name", "c1", "--context", "dead")
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "the managed cluster https://127.0.0.1:1 cannot be reached", "check --context and --kubeconfig")
}
