// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func newWorked(t *testing.T) (*clitest.Server, string) {
	t.Helper()
	s := clitest.NewServer(t, clitest.NewWork("c1", "web", 2, "True", "True"), clitest.Failing(clitest.NewWork("c2", "web", 2, "False", "True"), workv1.ManifestApplied, "no such\x1b[2J kind"),
		clitest.NewWork("c3", "web", 1, "True", "True"), clitest.Failing(clitest.NewWork("c1", "db", 2, "True", "False"), workv1.ManifestAvailable, "0 of 1"))
	return s, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

func TestGetWorks(t *testing.T) {
	s, config := newWorked(t)
	for _, test := range []struct{ args, want string }{
		{"get works", `NAME CLUSTER NUMBER OF MANIFESTS APPLIED AVAILABLE
db c1 1 True False
web c1 1 True True
web c2 1 False True
web c3 1 Unknown Unknown`},
		{"get work web --clusters c1,c3", `NAME CLUSTER NUMBER OF MANIFESTS APPLIED AVAILABLE
web c1 1 True True
web c3 1 Unknown Unknown`},
		{"get works db -n c1 -o wide", `NAME CLUSTER NUMBER OF MANIFESTS APPLIED AVAILABLE PROGRESSING DEGRADED COMPLETE PROBLEM AGE
db c1 1 True False Unknown Unknown Unknown Deployment web/nginx is not available: 0 of 1 <unknown>`},
		{"get works -n c1 -o name", "manifestwork.work.open-cluster-management.io/db\nmanifestwork.work.open-cluster-management.io/web"},
	} {
		if got := clitest.Squeeze(clitest.MustRun(t, config, strings.Fields(test.args)...)); got != test.want {
			t.Errorf("%s prints\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
	if stdout, stderr, err := clitest.Run(t, config, "get", "works", "-n", "c9"); err != nil || stdout != "" || stderr != "No works found.\n" {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
	s.PageSize = 1
	if got := clitest.MustRun(t, config, "get", "works", "-o", "name"); strings.Count(got, "\n") != 4 {
		t.Errorf("of several pages it prints %q", got)
	}
}

// TestWorkStatus_Deleting verifies that the status of a work that is being deleted shows what it waits for.
func TestWorkStatus_Deleting(t *testing.T) {
	begun, told := clitest.NewWork("c1", "web", 2, "True", "True"), clitest.NewWork("c2", "web", 2, "True", "True")
	for _, w := range []*workv1.ManifestWork{begun, told} {
		w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: time.Now()}, []string{workv1.ManifestWorkFinalizer}
	}
	meta.SetStatusCondition(&told.Status.Conditions, metav1.Condition{Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: "WorkDeleting",
		Message: "ManifestWork is being deleted; waits for the deletion of namespaces x"})
	got := clitest.MustRun(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t, begun, told)}), "work", "status", "web")
	clitest.Says(t, clitest.Squeeze(got), "c1: is being deleted", "c2: is being deleted; waits for the deletion of namespaces x")
}

func TestWorkStatus(t *testing.T) {
	_, config := newWorked(t)
	want := `Work web is applied on 1 of 3 clusters, and available on 2.
c2: Deployment web/nginx is not applied: no such\x1b[2J kind
c3: its agent has not reported it yet`
	if got := clitest.Squeeze(clitest.MustRun(t, config, "work", "status", "web")); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if got := clitest.MustRun(t, config, "work", "status", "web", "--cluster", "c1"); got != "Work web is applied on 1 of 1 cluster, and available on 1.\n" {
		t.Errorf("it prints %s", got)
	}
	got := clitest.MustRun(t, config, "work", "status", "web", "-o", "wide")
	clitest.Says(t, clitest.Squeeze(got), "c2 Deployment web/nginx False Unknown", "ReadyReplicas=0", "c3 <none> Unknown Unknown its agent has not reported it yet <none>")
	if strings.Contains(got, "\x1b") {
		t.Errorf("it moves the cursor: %q", got)
	}
	if _, _, err := clitest.Run(t, config, "work", "status", "none"); err == nil || !strings.Contains(err.Error(), "there is no work none") {
		t.Errorf("no work: %v", err)
	}
}

// TestWorkStatus_Waits verifies that the command waits for the status of the current spec, and prints what it waited for.
func TestWorkStatus_Waits(t *testing.T) {
	s, config := newWorked(t)
	stdout, _, err := clitest.RunIn(s.InterruptedAt("GET "+clitest.WorksPath+"c3/manifestworks", 3), t, config, "work", "status", "web", "--clusters", "c1,c3", "--wait")
	if err == nil || !strings.Contains(err.Error(), "done on 1 of 2 clusters; c3: its agent has not reported") || !strings.Contains(stdout, "applied on 1 of 2") {
		t.Errorf("%v, %q", err, stdout)
	}
	looks := 0
	s.On["GET "+clitest.WorksPath+"c3/manifestworks"] = func(http.ResponseWriter, []byte) bool {
		looks++
		if looks == 3 {
			s.Put(clitest.NewWork("c3", "web", 2, "True", "True"))
		}
		return false
	}
	if got := clitest.MustRun(t, config, "work", "status", "web", "--clusters", "c1,c3", "--wait"); !strings.HasPrefix(got, "Work web is applied on 2 of 2 clusters") {
		t.Errorf("it prints %q", got)
	}
}

// manifests writes files to a folder.
func manifests(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const twoObjects = `apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Anything
  metadata: {name: x, namespace: web}
  unknown: {field: 1}
`

func TestCreateWork(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewWork("c2", "web", 2, "True", "True"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	dir := manifests(t, map[string]string{"a.yaml": twoObjects, "b.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"}}`})
	// An existing work is not changed, and does not prevent the creation of others.
	stdout, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir, "--clusters", "c1,c2,c3")
	if err == nil || !strings.Contains(err.Error(), "cluster c2:") || !strings.Contains(err.Error(), "--overwrite") ||
		stdout != "manifestwork/web created in cluster c1\nmanifestwork/web created in cluster c3\n" {
		t.Fatalf("%v, %q", err, stdout)
	}
	made := s.Get(clitest.WorksPath + "c3/manifestworks/web")
	clitest.Says(t, s.Bodies["POST "+clitest.WorksPath+"c3/manifestworks"], `"kind":"Namespace"`, `"unknown":{"field":1}`, `"name":"y"`)
	if made == nil || strings.Contains(s.Bodies["POST "+clitest.WorksPath+"c3/manifestworks"], `"kind":"List"`) {
		t.Errorf("made %v", made)
	}
	if got := clitest.MustRun(t, config, "create", "work", "web", "-f", dir, "--cluster", "c2", "--overwrite"); got != "manifestwork/web configured in cluster c2\n" {
		t.Errorf("it prints %q", got)
	}
	clitest.Says(t, clitest.MustRun(t, config, "create", "work", "web", "-f", dir, "-c", "c4", "--dry-run", "-o", "yaml"), "kind: ManifestWork", "namespace: c4")
	if s.Get(clitest.WorksPath+"c4/manifestworks/web") != nil {
		t.Error("a dry run makes a work")
	}
}

func TestCreateWork_ByPlacement(t *testing.T) {
	s, config := clitest.NewPlaced(t)
	dir := manifests(t, map[string]string{"a.yaml": twoObjects})
	if got := clitest.MustRun(t, config, "create", "work", "web", "-f", dir, "--placement", "dev/web"); strings.Count(got, "manifestwork/web created in cluster ") != 3 {
		t.Errorf("it prints %q", got)
	}
	if _, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir, "--placement", "web"); err == nil || !strings.Contains(err.Error(), "there is no placement web in the namespace default: --placement takes NAMESPACE/NAME") {
		t.Errorf("of another namespace: %v", err)
	}
	if _, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir); err == nil || !strings.Contains(err.Error(), "--clusters must name the clusters to create the work on, or --placement") {
		t.Errorf("nowhere: %v", err)
	}
	s.Refuse("POST "+clitest.WorksPath+"c9/manifestworks", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "c9"))
	if _, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir, "--clusters", "c9"); err == nil || !strings.Contains(err.Error(), "cluster c9: there is no such cluster") {
		t.Errorf("on no cluster: %v", err)
	}
	if _, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir, "--placement", "dev/none"); err == nil || !strings.Contains(err.Error(), "has chosen no cluster") {
		t.Errorf("without clusters: %v", err)
	}
	if got := clitest.MustRun(t, config, "create", "work", "web", "-f", dir, "--placement", "dev/web", "--replicaset"); got != "manifestworkreplicaset/web created\n" {
		t.Errorf("it prints %q", got)
	}
	clitest.Says(t, s.Bodies["POST /apis/work.open-cluster-management.io/v1alpha1/namespaces/dev/manifestworkreplicasets"], `"placementRefs":[{"name":"web"`, `"kind":"Namespace"`)
	if got := clitest.MustRun(t, config, "create", "work", "web", "-f", dir, "--placement", "dev/web", "-r", "--overwrite"); got != "manifestworkreplicaset/web configured\n" {
		t.Errorf("it prints %q", got)
	}
}

func TestCreateWork_InvalidArguments(t *testing.T) {
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)})
	dir := manifests(t, map[string]string{"a.yaml": twoObjects})
	nameless := manifests(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\n"})
	empty := manifests(t, nil)
	for _, args := range []string{
		"-f " + dir, "--clusters c1", "-f " + dir + " --clusters c1 --placement dev/web", "-f " + dir + " --clusters c1 --replicaset",
		"-f " + dir + " --placement dev/", "-f " + dir + " --placement a/b/c", "-f " + empty + " --clusters c1", "-f " + nameless + " --clusters c1",
		"-f " + dir + "/none.yaml --clusters c1", "-f " + dir + " --placement dev/web -r --wait",
	} {
		if _, _, err := clitest.Run(t, config, append([]string{"create", "work", "web"}, strings.Fields(args)...)...); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	_, _, err := clitest.Run(t, config, "create", "work", "web", "-f", dir, "--placement", "dev/web", "-r", "--wait")
	if err == nil || !strings.Contains(err.Error(), "kubectl hub rollout status web --wait") {
		t.Errorf("how to wait for a replica set: %v", err)
	}
}

func TestDeleteWork(t *testing.T) {
	s, config := newWorked(t)
	if _, _, err := clitest.Run(t, config, "delete", "work", "web"); err == nil || !strings.Contains(err.Error(), "--clusters must name") {
		t.Errorf("without clusters: %v", err)
	}
	want := "manifestwork \"web\" deleted from cluster c1\nmanifestwork \"web\" not found in cluster c9\n"
	if got := clitest.MustRun(t, config, "delete", "work", "web", "--clusters", "c1,c9", "--wait"); got != want {
		t.Errorf("it prints %q", got)
	}
	if s.Get(clitest.WorksPath+"c1/manifestworks/web") != nil || s.Get(clitest.WorksPath+"c1/manifestworks/db") == nil {
		t.Errorf("left are %v", s.Paths())
	}
	s.WantAsked("GET "+clitest.WorksPath+"c1/manifestworks/web", "DELETE "+clitest.WorksPath+"c1/manifestworks/web", "GET "+clitest.WorksPath+"c9/manifestworks/web",
		"GET "+clitest.WorksPath+"c1/manifestworks/web")
	clitest.Says(t, s.Bodies["DELETE "+clitest.WorksPath+"c1/manifestworks/web"], `"preconditions":{"uid":"u"}`)
	if got := clitest.MustRun(t, config, "delete", "work", "web", "-A"); strings.Count(got, " deleted from cluster ") != 2 {
		t.Errorf("it prints %q", got)
	}
	s.Refuse("DELETE "+clitest.WorksPath+"c1/manifestworks/db", apierrors.NewForbidden(workv1.Resource("manifestworks"), "db", nil))
	if _, _, err := clitest.Run(t, config, "delete", "work", "db", "-n", "c1"); !apierrors.IsForbidden(err) {
		t.Errorf("what may not be deleted: %v", err)
	}
}

// TestDeleteWork_ReportsProgress verifies that the command prints what the agent waits for.
func TestDeleteWork_ReportsProgress(t *testing.T) {
	s, config := newWorked(t)
	ending := clitest.NewWork("c1", "web", 2, "True", "True")
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Now()}, []string{workv1.ManifestWorkFinalizer}
	meta.SetStatusCondition(&ending.Status.Conditions, metav1.Condition{Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: "WorkDeleting",
		Message: "ManifestWork is being deleted; waits for the deletion of namespaces x"})
	s.On["DELETE "+clitest.WorksPath+"c1/manifestworks/web"] = func(w http.ResponseWriter, _ []byte) bool {
		s.Put(ending)
		clitest.WriteJSON(w, http.StatusOK, ending)
		return true
	}
	_, _, err := clitest.RunIn(s.InterruptedAt("GET "+clitest.WorksPath+"c1/manifestworks/web", 3), t, config, "delete", "work", "web", "--clusters", "c1", "--wait")
	if want := "with the finalizers " + workv1.ManifestWorkFinalizer + ": it is being deleted; waits for the deletion of namespaces x"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCreateWork_OnePerCluster verifies that a cluster that is temporarily in two decisions of a placement gets one work.
func TestCreateWork_OnePerCluster(t *testing.T) {
	s, config := clitest.NewPlaced(t)
	twice := &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web-decision-11", Labels: map[string]string{v1beta1.PlacementLabel: "web"}}}
	twice.Status.Decisions = []v1beta1.ClusterDecision{{ClusterName: "c1"}}
	s.Put(twice)
	if got := clitest.MustRun(t, config, "create", "work", "web", "-f", manifests(t, map[string]string{"a.yaml": twoObjects}), "--placement", "dev/web"); strings.Count(got, "in cluster c1\n") != 1 {
		t.Errorf("it prints %q", got)
	}
}
