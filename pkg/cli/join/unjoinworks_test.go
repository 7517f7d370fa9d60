// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	recordsPath    = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
	configMapsPath = "/api/v1/namespaces/a/configmaps"
)

// newRecord returns a record of an agent, with ConfigMaps in the namespace a.
func newRecord(agentID, work string, objects ...string) *workv1.AppliedManifestWork {
	record := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "hash-" + work, UID: types.UID("uid-" + agentID + work), Finalizers: []string{workv1.AppliedManifestWorkFinalizer}},
		Spec: workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: agentID, ManifestWorkName: work}}
	for _, name := range objects {
		record.Status.AppliedResources = append(record.Status.AppliedResources, workv1.AppliedManifestResourceMeta{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "a", Name: name}, Version: "v1"})
	}
	return record
}

// newBrought is newJoined with an agent that has applied two works. The object theirs is listed in a record that does not own it.
func newBrought(t *testing.T, status batchv1.JobStatus) (*clitest.Server, string) {
	t.Helper()
	cluster, config := newJoined(t, status)
	_, _, _, args := newJoining(t)
	if _, _, err := clitest.Run(t, config, append(args, "--works=admin")...); err != nil {
		t.Fatal(err)
	}
	for work, objects := range map[string][]string{"w1": {"one", "theirs"}, "w2": {"two"}} {
		record := newRecord(registration.AgentNamespace, work, objects...)
		cluster.Put(record)
		for _, name := range objects {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
			if name != "theirs" {
				object.OwnerReferences = []metav1.OwnerReference{{APIVersion: workv1.SchemeGroupVersion.String(), Kind: "AppliedManifestWork", Name: record.Name, UID: record.UID}}
			}
			cluster.Put(object)
		}
	}
	cluster.Asked = nil
	return cluster, config
}

var leftTheHub = batchv1.JobStatus{Succeeded: 1}

func TestUnjoinWorks_RequiresChoice(t *testing.T) {
	cluster, config := newBrought(t, leftTheHub)
	_, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1")
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "the agent has applied 2 works with 3 objects to this cluster: choose by --works=delete or --works=keep what happens to the objects, "+
		"or delete the works on the hub first, while the agent runs")
	cluster.WantUnchanged()
	if _, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=orphan"); err == nil || !strings.Contains(err.Error(), `--works must be delete or keep, not "orphan"`) {
		t.Errorf("a third fate: %v", err)
	}
	// --force is about the hub, and is not a choice for works.
	if _, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--force"); err == nil {
		t.Error("--force chooses")
	}
	cluster.WantUnchanged()
}

func TestUnjoinWorks_Finalizes(t *testing.T) {
	for fate, test := range map[withdraw.Fate]struct {
		left []string
		said string
	}{
		withdraw.Delete: {[]string{configMapsPath + "/theirs"}, "The objects of its works are deleted: 2 works with 3 objects.\nCluster c1 has left its hub."},
		withdraw.Keep: {[]string{configMapsPath + "/one", configMapsPath + "/theirs", configMapsPath + "/two"},
			"The objects of its works are kept: 2 works with 3 objects.\nCluster c1 has left its hub."},
	} {
		t.Run(string(fate), func(t *testing.T) {
			t.Parallel()
			cluster, config := newBrought(t, leftTheHub)
			stdout, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works", string(fate))
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			clitest.Says(t, stdout, test.said)
			if left := cluster.Paths(); !slices.Equal(left, test.left) {
				t.Errorf("it has left %q, want %q", left, test.left)
			}
			for _, path := range test.left {
				if refs := cluster.Get(path).GetOwnerReferences(); len(refs) > 0 {
					t.Errorf("%s belongs to %v", path, refs)
				}
			}
			// The agent, which would apply the works again, is stopped and has left before any of their objects is changed.
			changes := cluster.Changes()
			first := slices.IndexFunc(changes, func(change string) bool { return clitest.NameOf(change) == "one" || strings.HasSuffix(change, " one") })
			told, stopped := slices.Index(changes, "POST jobs"), slices.Index(changes, "PATCH "+deploy.AgentName)
			if first < 0 || told < 0 || stopped < 0 || first < told || first < stopped {
				t.Errorf("it changes %q", changes)
			}
		})
	}
}

// TestUnjoinWorks_RetainedWhenHubIsNotNotified verifies that nothing of works is changed if the hub cannot be reached, unless --force is set: the agent
// continues to apply them.
func TestUnjoinWorks_RetainedWhenHubIsNotNotified(t *testing.T) {
	failed := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}
	cluster, config := newBrought(t, failed)
	before := cluster.Paths()
	if _, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete"); err == nil {
		t.Fatal("it goes on")
	}
	if after := cluster.Paths(); !slices.Equal(after, before) {
		t.Errorf("there are %q", after)
	}
	cluster.Asked = nil
	stdout, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete", "--force", "-o", "json")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	clitest.Says(t, stdout, `"fate": "delete"`, `"works": 2`, `"objects": 3`, `"left": false`)
	// The agent was started again, and so is stopped again.
	var replicas []string
	for _, change := range cluster.Changes() {
		if change == "PATCH "+deploy.AgentName {
			replicas = append(replicas, change)
		}
	}
	if len(replicas) != 3 || !strings.Contains(cluster.Bodies["PATCH "+clitest.DeploymentPath], `"replicas":0`) {
		t.Errorf("the agent was scaled by %q, last %s", replicas, cluster.Bodies["PATCH "+clitest.DeploymentPath])
	}
}

// TestUnjoinWorks_ResumesAfterFailure verifies that a record that cannot be finalized does not delay others, and that the next unjoin continues with
// it. The hub was notified already, and the agent stays stopped.
func TestUnjoinWorks_ResumesAfterFailure(t *testing.T) {
	cluster, config := newBrought(t, leftTheHub)
	cluster.Refuse("DELETE "+configMapsPath+"/one", clitest.Forbidden("configmaps", "delete"))
	_, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete")
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "1 work cannot be removed (fix the cause, and run unjoin again): configmaps a/one of work w1: ", "cannot delete")
	if cluster.Get(configMapsPath+"/two") != nil {
		t.Error("the other work is still there")
	}
	deployment := cluster.Get(clitest.DeploymentPath)
	if replicas, _, _ := clitest.NestedNumber(deployment.Object, "spec", "replicas"); replicas != 0 {
		t.Errorf("the agent runs: %v", replicas)
	}
	// The Job of a real agent deletes these.
	cluster.Mu.Lock()
	delete(cluster.Objects, clitest.IdentitySecret)
	delete(cluster.On, "DELETE "+configMapsPath+"/one")
	cluster.Mu.Unlock()
	if _, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1"); err == nil || !strings.Contains(err.Error(), "1 work with 2 objects") {
		t.Errorf("again, without a choice: %v", err)
	}
	if _, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if left := cluster.Paths(); !slices.Equal(left, []string{configMapsPath + "/theirs"}) {
		t.Errorf("it has left %q", left)
	}
}

// TestUnjoinWorks_RequiresChoiceForLateWorks verifies that unjoin fails if an agent applies its first work while it is being stopped: the user
// has not chosen what happens to it.
func TestUnjoinWorks_RequiresChoiceForLateWorks(t *testing.T) {
	cluster, config := newJoined(t, leftTheHub)
	made := cluster.On["POST "+jobsPath]
	cluster.On["POST "+jobsPath] = func(w http.ResponseWriter, body []byte) bool {
		cluster.Put(newRecord(withdraw.AgentID("https://hub"), "late"))
		return made(w, body)
	}
	_, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1")
	if err == nil || !strings.Contains(err.Error(), "1 work with 0 objects") || cluster.Get(clitest.DeploymentPath) == nil {
		t.Fatalf("it goes on: %v; there are %q", err, cluster.Paths())
	}
	if _, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=keep"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if left := cluster.Paths(); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
}

// TestUnjoinWorks_ResumesAfterKillAtEachWrite verifies that if unjoin is killed at any of its changes, the next one completes.
func TestUnjoinWorks_ResumesAfterKillAtEachWrite(t *testing.T) {
	for n := 1; ; n++ {
		cluster, config := newBrought(t, leftTheHub)
		ctx, cancel := context.WithCancel(t.Context())
		changes := 0
		for _, path := range append(cluster.Paths(), recordsPath, jobPath, jobsPath) {
			for _, method := range []string{"PATCH", "DELETE", "POST"} {
				before := cluster.On[method+" "+path]
				cluster.On[method+" "+path] = func(w http.ResponseWriter, body []byte) bool {
					changes++
					if changes == n {
						cancel()
					}
					return before != nil && before(w, body)
				}
			}
		}
		// A real Job deletes the agent's identity after notifying the hub.
		made := cluster.On["POST "+jobsPath]
		cluster.On["POST "+jobsPath] = func(w http.ResponseWriter, body []byte) bool {
			cluster.Mu.Lock()
			delete(cluster.Objects, clitest.IdentitySecret)
			cluster.Mu.Unlock()
			return made(w, body)
		}
		_, _, err := clitest.RunIn(ctx, t, config, "unjoin", "--cluster-name", "c1", "--works=delete")
		cancel()
		if err == nil {
			if n < 10 {
				t.Errorf("there are only %d changes", n)
			}
			return
		}
		changes = 1000
		if _, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete"); err != nil {
			t.Fatalf("killed at change %d: %v: %s", n, err, stderr)
		}
		// The Job is deleted with the namespace.
		left := slices.DeleteFunc(cluster.Paths(), func(path string) bool { return path == jobPath })
		if !slices.Equal(left, []string{configMapsPath + "/theirs"}) {
			t.Fatalf("killed at change %d, it has left %q", n, left)
		}
	}
}

// TestUnjoinWorks_RetainsThoseOfOtherAgents verifies that the records of other agents, and what they own, stay. The definition of the kind stays, too:
// deleting it would delete all of these.
func TestUnjoinWorks_RetainsThoseOfOtherAgents(t *testing.T) {
	cluster, config := newBrought(t, leftTheHub)
	cluster.Put(newRecord("another-agent", "w9", "one"))
	if _, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--works=delete"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if left, want := cluster.Paths(), []string{configMapsPath + "/theirs", worksCRDPath, recordsPath + "/hash-w9"}; !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
}

// TestUnjoinWorks_OtherAgent verifies that nothing is changed of an agent that was not deployed by this program, and has a different or unknown ID.
func TestUnjoinWorks_OtherAgent(t *testing.T) {
	hash := withdraw.AgentID("https://hub")
	for name, test := range map[string]struct {
		change func(*clitest.Server)
		id     string
		own    bool
	}{
		"as join calls it":           {nil, registration.AgentNamespace, true},
		"of another agent":           {nil, "another", false},
		"by a flag":                  {agentArgs(t, "--works", "--agent-id=mine"), "mine", true},
		"without a flag":             {agentArgs(t, "--works"), hash, true},
		"without a flag, of another": {agentArgs(t, "--works"), registration.AgentNamespace, false},
		"not ours": {func(s *clitest.Server) { d := s.Get(clitest.DeploymentPath); d.SetLabels(nil); s.PutRaw(d) },
			registration.AgentNamespace, false},
	} {
		cluster, config := newJoined(t, leftTheHub)
		_, _, _, args := newJoining(t)
		if _, _, err := clitest.Run(t, config, append(args, "--works=admin")...); err != nil {
			t.Fatal(err)
		}
		if test.change != nil {
			test.change(cluster)
		}
		cluster.Put(newRecord(test.id, "w1"))
		_, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1", "--force")
		if own := err != nil && strings.Contains(err.Error(), "1 work with 0 objects"); own != test.own {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func agentArgs(t *testing.T, args ...string) func(*clitest.Server) {
	return func(s *clitest.Server) {
		t.Helper()
		var list []any
		for _, arg := range args {
			list = append(list, arg)
		}
		deployment := s.Get(clitest.DeploymentPath)
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		containers[0].(map[string]any)["args"] = list
		if err := unstructured.SetNestedSlice(deployment.Object, containers, path...); err != nil {
			t.Fatal(err)
		}
		s.PutRaw(deployment)
	}
}

// TestJoinWorks_NoneWarnsOfRemainingObjects verifies that an agent that stops applying works leaves their objects, and that the user is warned.
func TestJoinWorks_NoneWarnsOfRemainingObjects(t *testing.T) {
	cluster, config := newBrought(t, leftTheHub)
	_, _, _, args := newJoining(t)
	before := len(cluster.Paths())
	_, stderr, err := clitest.Run(t, config, append(args, "--works=none")...)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stderr, "Warning: 2 works with 3 objects stay in the cluster unchanged, and no longer follow the hub")
	if after := len(cluster.Paths()); before-after != 5 {
		t.Errorf("%d objects are gone, and not the five that have the rights", before-after)
	}
}

// TestUnjoinWorks_ReportsProgress verifies that a wait for many works prints its progress.
func TestUnjoinWorks_ReportsProgress(t *testing.T) {
	cluster, config := newBrought(t, leftTheHub)
	// A server deletes the record only when it has no finalizers. This server never does.
	path := recordsPath + "/hash-w1"
	cluster.On["DELETE "+path] = func(w http.ResponseWriter, _ []byte) bool {
		clitest.WriteJSON(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		return true
	}
	record := newRecord(registration.AgentNamespace, "w1", "one")
	record.Finalizers = append(record.Finalizers, "example.com/held")
	cluster.Put(record)
	_, _, err := clitest.RunIn(cluster.InterruptedAt("GET "+path, 4), t, config, "unjoin", "--cluster-name", "c1", "--works=delete")
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), fmt.Sprintf("waiting for the objects of works to be deleted: interrupted: 1 work left, the finalizers %s of the record of work w1", "example.com/held"))
}
