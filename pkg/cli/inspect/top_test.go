// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const listLeases = "GET /apis/coordination.k8s.io/v1/leases"

// newTop returns a hub with three clusters: c0 has no lease, the lease of c1 was renewed two hours ago, the one of c2 ten seconds ago.
func newTop(t *testing.T) (*clitest.Server, string) {
	t.Helper()
	s := clitest.NewServer(t, clitest.NewSet("s"), clitest.NewSet("empty"), clitest.NewMember("s", "c1", ""), clitest.NewMember("other", "c1", ""), clitest.NewWork("c1", "a", 2, "True", "True"),
		clitest.NewWork("c1", "b", 2, "True", "True"), clitest.NewWork("c2", "a", 2, "True", "True"))
	for i, age := range []time.Duration{0, 2 * time.Hour, 10 * time.Second} {
		c := clitest.NewCluster(fmt.Sprint("c", i), nil)
		c.Spec.HubAcceptsClient = true
		if age > 0 {
			c.Status.Allocatable = clusterv1.ResourceList{"cpu": *resource.NewQuantity(int64(2*i), resource.DecimalSI), "memory": resource.MustParse("8Gi")}
			c.Status.Conditions = []metav1.Condition{{Type: registration.ConditionJoined, Status: "True"},
				{Type: registration.ConditionAvailable, Status: "True", Reason: "R\x1b"}}
			s.Put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.Name, Name: registration.LeaseName},
				Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now().Add(-age)}}})
		}
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: registration.ClaimAgentVersion, Value: []string{"v\x1b[2J", "v1.3.0", "v1.2.0"}[i]}}
		s.Put(c)
	}
	s.PageSize = 2
	return s, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

func TestTopClusters(t *testing.T) {
	s, config := newTop(t)
	got := clitest.Squeeze(clitest.MustRun(t, config, "top", "clusters"))
	clitest.Says(t, got, "NAME STATE LAST HEARD CPU MEMORY WORKS REASON\nc0 Progressing <unknown> <unknown> <unknown> 0 NotJoined\nc1 Healthy 120m 2 8Gi 2 R\\x1b\nc2 Healthy 10s 4 8Gi 1 ")
	stdout, stderr, err := clitest.Run(t, config, "top", "clusters", "--sort-by", "cpu", "--limit", "1")
	if err != nil || !strings.HasPrefix(clitest.Squeeze(stdout), "NAME STATE LAST HEARD CPU MEMORY WORKS REASON\nc2 ") || strings.Count(stdout, "\n") != 2 ||
		stderr != "1 of 3 are shown: --limit 0 shows all\n" {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
	var uses []tree.ClusterUse
	if err := json.Unmarshal([]byte(clitest.MustRun(t, config, "top", "clusters", "--sort-by", "name", "-o", "json")), &uses); err != nil || len(uses) != 3 ||
		uses[0].Renewed != nil || *uses[1].Works != 2 {
		t.Errorf("-o json: %v, %+v", err, uses)
	}
	stdout, stderr, err = clitest.Run(t, config, "top", "agents")
	if err != nil || !strings.Contains(stderr, "Not seen: the version of the hub") {
		t.Errorf("without the Deployment of hub-apiserver: %v, %s%s", err, stdout, stderr)
	}
	s.Answer("GET /apis/apps/v1/namespaces/clusterhub-system/deployments/hub-apiserver", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "hub-apiserver"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hub-apiserver", Image: "x/hub-apiserver:v1.2.9"}}}}}})
	clitest.Says(t, clitest.Squeeze(clitest.MustRun(t, config, "top", "agents", "--sort-by=name")), "CLUSTER ACCEPTED AVAILABLE LAST HEARD CLOCK CERTIFICATE REQUEST WAITS AGENT VERSION SKEW UPGRADE KUBERNETES VERSION\n"+
		"c0 true Unknown <unknown> Unknown Unknown false <none> <none> <none> <none>\nc1 true True 120m Unknown Unknown false v1.3.0 newer than the hub <none> <none>")
	clitest.Says(t, clitest.Squeeze(clitest.MustRun(t, config, "top", "agents", "--sort-by=agent")), "\nc1 true True 120m Unknown Unknown false v1.3.0 newer than the hub <none> <none>\nc0 ")
	// What the user may not see is unknown, and not 0.
	s.Refuse(listLeases, clitest.Forbidden("leases", "list"))
	s.Refuse(listWorks, clitest.Forbidden("manifestworks", "list"))
	stdout, stderr, err = clitest.Run(t, config, "top", "clusters")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, clitest.Squeeze(stdout), "c2 Healthy <unknown> 4 8Gi <unknown> ")
	clitest.Says(t, stderr, "Not seen: when agents last renewed their leases: ", "Not seen: the number of works: ")
	// A user who may only see members is shown the data of members.
	s.Refuse(listClusters, clitest.Forbidden("managedclusters", "list"))
	s.Refuse(viewClusters, clitest.Forbidden("managedclusters", "list"))
	stdout, stderr, err = clitest.Run(t, config, "top", "clusters")
	if err != nil || clitest.Squeeze(stdout) != "NAME STATE LAST HEARD CPU MEMORY WORKS REASON\nc1 Progressing <unknown> <unknown> <unknown> <unknown> NotAccepted" {
		t.Errorf("%v, %q", err, stdout)
	}
	clitest.Says(t, stderr, `Not seen: the clusters themselves, except for the data of the members of sets: you cannot list resource "managedclusters"`)
	for args, want := range map[string]string{"--sort-by=size": "--sort-by: unknown order \"size\": it must be one of agent, cpu, lease", "--limit=-1": "--limit must be 0 or more, not -1"} {
		if _, _, err := clitest.Run(t, config, "top", "clusters", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestTopSets(t *testing.T) {
	s, config := newTop(t)
	// The members of other are shown to the user, and the set itself is not listed.
	const want = "NAME MEMBERS AVAILABLE NOT AVAILABLE UNKNOWN WAITING\nother 1 0 0 0 1\ns 1 0 0 0 1"
	if got := clitest.Squeeze(clitest.MustRun(t, config, "top", "sets")); got != want+"\nempty 0 0 0 0 0" {
		t.Errorf("it prints\n%s", got)
	}
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersets", clitest.Forbidden("managedclustersets", "list"))
	s.Refuse("GET /apis/clusterview.open-cluster-management.io/v1alpha1/managedclustersets", clitest.Forbidden("managedclustersets", "list"))
	if got := clitest.Squeeze(clitest.MustRun(t, config, "top", "sets")); got != want {
		t.Errorf("for a user who is shown members alone it prints\n%s", got)
	}
}

// TestTop_ReadsPages verifies that lists are paged, and that only the metadata of works is read.
func TestTop_ReadsPages(t *testing.T) {
	s, config := newTop(t)
	clitest.MustRun(t, config, "top", "clusters")
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, request := range s.Asked {
		if strings.HasPrefix(request, "GET ") && !strings.Contains(request, "limit=500") {
			t.Errorf("it asks %s", request)
		}
	}
	if len(s.Asked) != 2+1+2 {
		t.Errorf("it asks %q", s.Asked)
	}
}
