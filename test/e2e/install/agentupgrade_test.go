// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
	"github.com/clusterhub/clusterhub/test/typing"
)

// TestAgents_AreUpgradedFromTheHub runs the commands of docs/upgrade-agents.md: a work upgrades an agent to a different version, by an update of the
// agent's own Deployment, and a version that does not exist leaves the agent running. Only this setup shows it: two programs of one identity, one of
// which replaces the other through a Deployment.
func TestAgents_AreUpgradedFromTheHub(t *testing.T) {
	h := harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) {
		c.WithoutHubControllerManager, c.HubControllerManagerArgs = false, nil
	})
	cluster := harness.LendCluster(t)
	address := harness.Must(url.Parse(h.AdminConfig().Host))(t)
	kubelet.Start(t, kubelet.Config{Cluster: cluster.AdminConfig(), BinDir: harness.BinDir(t), ImagesDir: harness.ImagesDir(), Reach: []string{address.Host},
		Versions: map[string]string{"v1.3.0": harness.BinDir(t), "v1.4.0": agentOf(t, "v1.4.0"), "v1.5.0": ""}})
	p := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": h, "c1": cluster})}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		get := []string{"get", "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name}, generation {.metadata.generation}: {.status}{"\n"}{end}`}
		for on, kinds := range map[*localhub.Instance]string{h: "manifestworkreplicasets,manifestworks", cluster: "deployments,replicasets,pods"} {
			out, err := on.Kubectl(context.WithoutCancel(t.Context()), append(get, kinds)...).CombinedOutput()
			t.Logf("%s: %v\n%s", kinds, err, out)
		}
	})
	p.Must(t, "init", "--wait", "--context", "hub")

	dir := t.TempDir()
	reader := typing.New(t, dir, "HOME="+dir, "LC_ALL=C.UTF-8", "KUBECONFIG="+p.Kubeconfig, "PATH="+harness.Must(filepath.Abs(harness.BinDir(t)))(t)+":"+os.Getenv("PATH"))
	reader.StopsAtFailure = true
	blocks := typing.RunBy(t, harness.Root, "test/e2e/install", "TestAgents_AreUpgradedFromTheHub")
	if len(blocks) != 7 {
		t.Fatalf("the page has %d blocks for this test", len(blocks))
	}
	reader.Types(blocks[:2])
	claims := func() string {
		c := harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Get(t.Context(), "c1", metav1.GetOptions{}))(t)
		i := slices.IndexFunc(c.Status.ClusterClaims, func(c clusterv1.ManagedClusterClaim) bool { return c.Name == registration.ClaimAgentVersion })
		if i < 0 {
			return ""
		}
		return c.Status.ClusterClaims[i].Value
	}
	deployment := func() *appsv1.Deployment {
		return harness.Must(harness.Kube(t, cluster.AdminConfig()).AppsV1().Deployments(registration.AgentNamespace).Get(t.Context(), registration.AgentDeployment, metav1.GetOptions{}))(t)
	}
	harness.Eventually(t, "the agent tells its version", func(context.Context) (bool, error) { return harness.Holds(claims() != "", claims()) })
	if got := claims(); got == "v1.4.0" {
		t.Fatalf("the programs of this run are of version %s", got)
	}
	before := deployment()

	reader.Types(blocks[2:4]) // from one tag to the next
	if got := claims(); got != "v1.4.0" {
		t.Errorf("the agent says that it is of version %s", got)
	}
	reader.Types(blocks[4:5]) // to a tag that does not exist
	reader.Types(blocks[5:])  // back, and without the replica set
	after := deployment()
	if after.UID != before.UID || len(after.OwnerReferences) > 0 || after.Status.AvailableReplicas != 1 {
		t.Errorf("the Deployment was %v, and is %v", before, after)
	}
	if got := claims(); got != "v1.4.0" {
		t.Errorf("at the end the agent says that it is of version %s", got)
	}
}

// agentOf builds a version of the agent into a folder.
func agentOf(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X github.com/clusterhub/clusterhub/pkg/command.version="+version, "-o", filepath.Join(dir, "hub-agent"), "./cmd/hub-agent")
	build.Dir, build.Env = harness.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return dir
}
