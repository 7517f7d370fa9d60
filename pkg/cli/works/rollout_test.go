// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/works"
)

const setPath = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/dev/manifestworkreplicasets/web"

func templateOf(text string) (spec workv1.ManifestWorkSpec) {
	spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: fmt.Appendf(nil, `{"apiVersion":"v1","data":{"text":%q},"kind":"ConfigMap","metadata":{"name":"a"}}`, text)}}}
	return spec
}

// replicaSet returns dev/web of generation 5, with a template and conditions.
func replicaSet(text string, conditions ...metav1.Condition) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web", UID: "1", Generation: 5, ResourceVersion: "7"}}
	set.Spec.ManifestWorkTemplate = templateOf(text)
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "p"}}
	set.Status.Conditions = conditions
	set.Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{Total: 2, DesiredTotal: 3, Updated: 2, Available: 1, Degraded: 1}
	return set
}

func revisionOf(uid types.UID, number int64, text string) *workv1alpha1.ManifestWorkReplicaSetRevision {
	r := &workv1alpha1.ManifestWorkReplicaSetRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dev", Name: work.RevisionName("web", uid, number), Labels: map[string]string{work.ReplicaSetLabel: "dev.web"}}}
	r.Spec = workv1alpha1.ManifestWorkReplicaSetRevisionSpec{ReplicaSet: "web", ReplicaSetUID: uid, Revision: number, ManifestWorkTemplate: templateOf(text)}
	return r
}

// patched handles patches of a set like a server, and counts them.
func patched(t *testing.T, s *clitest.Server, conflicts int, meanwhile func(*workv1alpha1.ManifestWorkReplicaSet)) *int {
	t.Helper()
	count := 0
	s.On["PATCH "+setPath] = func(w http.ResponseWriter, body []byte) bool {
		count++
		if count <= conflicts {
			set := replicaSet("three")
			set.ResourceVersion = "8"
			meanwhile(set)
			s.Put(set)
			conflict := apierrors.NewConflict(schema.GroupResource{}, "web", nil)
			clitest.WriteJSON(w, http.StatusConflict, conflict.ErrStatus)
			return true
		}
		var patch []struct {
			Path  string          `json:"path"`
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(body, &patch); err != nil || len(patch) != 3 {
			t.Errorf("%v: %s", err, body)
			return false
		}
		if string(patch[0].Value) != `"1"` || patch[2].Path != "/spec/manifestWorkTemplate" {
			t.Errorf("it sends %s", body)
		}
		set := replicaSet("")
		if err := json.Unmarshal(patch[2].Value, &set.Spec.ManifestWorkTemplate); err != nil {
			t.Error(err)
		}
		clitest.WriteJSON(w, http.StatusOK, set)
		return true
	}
	return &count
}

func TestRolloutUndo(t *testing.T) {
	s := clitest.NewServer(t, replicaSet("three"), revisionOf("1", 1, "one"), revisionOf("1", 2, "two"), revisionOf("0", 9, "of an earlier set"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	for args, want := range map[string]string{
		"undo web -n dev":                                "manifestworkreplicaset/web rolled back to revision 2\n",
		"undo web -n dev --to-revision 1":                "manifestworkreplicaset/web rolled back to revision 1\n",
		"undo web -n dev --dry-run=server":               "manifestworkreplicaset/web rolled back to revision 2 (server dry run)\n",
		"undo web -n dev --dry-run":                      "manifestworkreplicaset/web rolled back to revision 2 (dry run)\n",
		"undo web -n dev -o name":                        "manifestworkreplicaset.work.open-cluster-management.io/web\n",
		"undo web -n dev --to-revision 1 --dry-run -o=x": "",
	} {
		count := patched(t, s, 0, nil)
		stdout, _, err := clitest.Run(t, config, append([]string{"rollout"}, strings.Fields(args)...)...)
		if (err == nil) != (want != "") || stdout != want {
			t.Errorf("%s: %v, it prints %q, want %q", args, err, stdout, want)
		}
		sends := 1
		if strings.Contains(args, "--dry-run -") || strings.HasSuffix(args, "--dry-run") || want == "" {
			sends = 0
		}
		if *count != sends {
			t.Errorf("%s: it sends %d patches", args, *count)
		}
	}
	patched(t, s, 0, nil)
	got := clitest.MustRun(t, config, "rollout", "undo", "web", "-n", "dev", "-o", "yaml")
	clitest.Says(t, got, "text: two", "name: p", "kind: ManifestWorkReplicaSet\n")
	if _, _, err := clitest.Run(t, config, "rollout", "undo", "web", "-n", "dev", "--to-revision", "9"); err == nil ||
		!strings.Contains(err.Error(), "unable to find specified revision 9 in history") {
		t.Errorf("a revision of an earlier set: %v", err)
	}

	s.Put(replicaSet("two"))
	if got := clitest.MustRun(t, config, "rollout", "undo", "web", "-n", "dev"); !strings.Contains(got, "to revision 1") {
		t.Errorf("from the last that was a success it goes to %q", got)
	}
	count := patched(t, s, 0, nil)
	if got := clitest.MustRun(t, config, "rollout", "undo", "web", "-n", "dev", "--to-revision", "2"); !strings.Contains(got, "skipped rollback") || *count > 0 {
		t.Errorf("to what it has: %q, %d patches", got, *count)
	}

	alone := clitest.NewServer(t, replicaSet("two"), revisionOf("1", 2, "two"), revisionOf("0", 9, "of an earlier set"))
	config = clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": alone})
	count = patched(t, alone, 0, nil)
	if _, _, err := clitest.Run(t, config, "rollout", "undo", "web", "-n", "dev"); err == nil || !strings.Contains(err.Error(), "has no earlier template to roll back to") || *count > 0 {
		t.Errorf("without another template: %v, %d patches", err, *count)
	}
}

// TestRolloutUndo_ConcurrentWrites verifies that status updates of the hub during a rollout do not matter, and that the changes of another user to
// the spec are not overwritten.
func TestRolloutUndo_ConcurrentWrites(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*workv1alpha1.ManifestWorkReplicaSet)
		patches   int
		fails     string
	}{
		"the status":      {func(*workv1alpha1.ManifestWorkReplicaSet) {}, 4, ""},
		"the spec":        {func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Generation++ }, 1, "was changed concurrently"},
		"another set":     {func(set *workv1alpha1.ManifestWorkReplicaSet) { set.UID = "2" }, 1, "was changed concurrently"},
		"without any end": {func(*workv1alpha1.ManifestWorkReplicaSet) {}, works.UndoTries, "too many concurrent changes"},
	} {
		s := clitest.NewServer(t, replicaSet("three"), revisionOf("1", 2, "two"))
		conflicts := 3
		if name == "without any end" {
			conflicts = 100
		}
		count := patched(t, s, conflicts, c.meanwhile)
		_, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "rollout", "undo", "web", "-n", "dev")
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || *count != c.patches {
			t.Errorf("%s: %v after %d patches", name, err, *count)
		}
	}
}

func TestRolloutHistory(t *testing.T) {
	s := clitest.NewServer(t, replicaSet("two"), revisionOf("1", 1, "one"), revisionOf("1", 12, "two"), revisionOf("0", 9, "of an earlier set"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	want := "REVISION MANIFESTS PRESENT AGE\n12 1 true <unknown>\n1 1 false <unknown>"
	if got := clitest.Squeeze(clitest.MustRun(t, config, "rollout", "history", "web", "-n", "dev")); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	clitest.Says(t, clitest.MustRun(t, config, "rollout", "history", "web", "-n", "dev", "-o", "yaml"), "text: one", "text: two")
	none := clitest.NewServer(t, replicaSet("two"))
	stdout, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": none}), "rollout", "history", "web", "-n", "dev")
	if err != nil || stdout != "" || stderr != "No rollout history found.\n" {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
}

func TestRolloutStatus(t *testing.T) {
	out := metav1.Condition{Type: "PlacementRolledOut", Status: metav1.ConditionFalse, ObservedGeneration: 5, Reason: "Progressing", Message: "c2 has failed"}
	authorized := metav1.Condition{Type: "Authorized", Status: metav1.ConditionFalse, ObservedGeneration: 5, Reason: "NotAllowed", Message: "ann may not"}
	label := func(w *workv1.ManifestWork) *workv1.ManifestWork {
		w.Labels = map[string]string{work.ReplicaSetLabel: "dev.web"}
		return w
	}
	s := clitest.NewServer(t, replicaSet("two", out, authorized), label(clitest.NewWork("c1", "web-x", 2, "True", "True")),
		label(clitest.Failing(clitest.NewWork("c2", "web-x", 2, "True", "False"), workv1.ManifestAvailable, "0 of 1")), clitest.NewWork("c3", "other", 1, "True", "True"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	head := "Waiting for the rollout of ManifestWorkReplicaSet dev/web to finish: 2 of 3 clusters updated, 1 available, 1 degraded.\nc2 has failed; ann may not"
	want := head + "\nc2: Deployment web/nginx is not available: 0 of 1"
	if got := clitest.Squeeze(clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev")); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	stdout, _, err := clitest.RunIn(s.InterruptedAt("GET "+setPath, 3), t, config, "rollout", "status", "web", "-n", "dev", "--wait")
	if err == nil || !strings.Contains(err.Error(), "c2 has failed") || clitest.Squeeze(stdout) != want {
		t.Errorf("%v, %q", err, stdout)
	}
	// A user who may get the set need not have permission to list works on all clusters.
	s.Refuse("GET /apis/work.open-cluster-management.io/v1/manifestworks", apierrors.NewForbidden(schema.GroupResource{Resource: "manifestworks"}, "", nil))
	if got := clitest.Squeeze(clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev")); got != head {
		t.Errorf("it prints\n%s\nwant\n%s", got, head)
	}

	// A condition of an earlier spec is ignored.
	out.Status, out.ObservedGeneration = metav1.ConditionTrue, 4
	s.Put(replicaSet("two", out))
	clitest.Says(t, clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev"), "the hub has not observed the current spec yet")
	s.Put(revisionOf("1", 5, "two"))
	looks := 0
	s.On["GET "+setPath] = func(http.ResponseWriter, []byte) bool {
		looks++
		if looks == 3 {
			out.ObservedGeneration = 5
			s.Put(replicaSet("two", out))
		}
		return false
	}
	got := clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev", "--wait")
	if got != "ManifestWorkReplicaSet dev/web successfully rolled out to 3 clusters.\n" {
		t.Errorf("it prints %q", got)
	}
	if _, _, err := clitest.Run(t, config, "rollout", "status", "none", "-n", "dev"); !apierrors.IsNotFound(err) {
		t.Errorf("no set: %v", err)
	}
}

// TestRolloutStatus_WaitsForRevision verifies that a rollout undo after rollout status --wait can go back to the template.
func TestRolloutStatus_WaitsForRevision(t *testing.T) {
	const revisionsPath = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/dev/manifestworkreplicasetrevisions"
	const success = "ManifestWorkReplicaSet dev/web successfully rolled out to 3 clusters.\n"
	const pending = "the template is not in the rollout history yet: the hub records it when all clusters have succeeded for minSuccessTime\n"
	out := metav1.Condition{Type: "PlacementRolledOut", Status: metav1.ConditionTrue, ObservedGeneration: 5, Reason: "Complete"}
	// The set has returned to the template of revision 1, which is not the last one any more.
	s := clitest.NewServer(t, replicaSet("one", out), revisionOf("1", 1, "one"), revisionOf("1", 4, "two"), revisionOf("0", 9, "one"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	if got := clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev"); got != success+pending {
		t.Errorf("before it is recorded, it prints %q", got)
	}
	stdout, _, err := clitest.RunIn(s.InterruptedAt("GET "+revisionsPath, 3), t, config, "rollout", "status", "web", "-n", "dev", "--wait")
	if err == nil || !strings.Contains(err.Error(), "the template is not in the rollout history yet") || stdout != success+pending {
		t.Errorf("interrupted before it is recorded: %v, %q", err, stdout)
	}

	lists := 0
	s.On["GET "+revisionsPath] = func(http.ResponseWriter, []byte) bool {
		lists++
		if lists == 3 {
			s.Put(revisionOf("1", 5, "one"))
		}
		return false
	}
	if got := clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev", "--wait"); got != success || lists < 3 {
		t.Errorf("after %d lists of revisions, it prints %q", lists, got)
	}

	// No revision is recorded, or none can be read: there is nothing to wait for.
	for name, refusal := range map[string]*apierrors.StatusError{
		"may not list revisions":     apierrors.NewForbidden(schema.GroupResource{Resource: "manifestworkreplicasetrevisions"}, "", nil),
		"a hub without revisions":    apierrors.NewNotFound(schema.GroupResource{Resource: "manifestworkreplicasetrevisions"}, ""),
		"no cluster has been chosen": nil,
	} {
		set, want := replicaSet("three", out), success
		if refusal == nil {
			set.Status.Summary, want = workv1alpha1.ManifestWorkReplicaSetSummary{}, "ManifestWorkReplicaSet dev/web successfully rolled out to 0 clusters.\n"
		}
		s := clitest.NewServer(t, set)
		if refusal != nil {
			s.Refuse("GET "+revisionsPath, refusal)
		}
		config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
		for _, wait := range []string{"--wait=false", "--wait"} {
			if got := clitest.MustRun(t, config, "rollout", "status", "web", "-n", "dev", wait); got != want {
				t.Errorf("%s, %s: it prints %q", name, wait, got)
			}
		}
	}
}
