// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestKubectlHub_ClusterJoinsAndUnjoins(t *testing.T) {
	p, h, cluster, node := hubAndCluster(t)
	before := inventory(t, cluster)
	harness.Eventually(t, "a hub that has just started has bound the role of all agents", func(ctx context.Context) (bool, error) {
		_, err := harness.Kube(t, h.AdminConfig()).RbacV1().ClusterRoleBindings().Get(ctx, agentroles.ClusterRole, metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	hubBefore := inventory(t, h)

	// This command runs through kubectl.
	kubectl := h.Kubectl(t.Context(), "hub", "init", "--wait", "--context", "hub", "--kubeconfig", p.Kubeconfig)
	kubectl.Args = slices.Delete(kubectl.Args, 1, 3) // the flag --kubeconfig must follow the plugin's name
	kubectl.Env = append(kubectl.Env, "PATH="+filepath.Dir(harness.Binary(t, "kubectl-hub"))+":"+os.Getenv("PATH"))
	out, err := kubectl.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl hub init: %v\n%s", err, out)
	}
	harness.Contains(t, string(out), "The hub is prepared", "kubectl hub join --hub-token ", " --ca-data ", "--cluster-name <cluster_name>",
		"is this machine")
	if strings.Contains(string(out), "issues no client certificates") {
		t.Errorf("the hub issues certificates, and init says:\n%s", out)
	}
	requests := harness.Must(harness.Kube(t, h.AdminConfig()).CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}))(t)
	if len(requests.Items) > 0 {
		t.Errorf("init leaves %s", requests.Items[0].Name)
	}

	j := p.Joining(t, "init", "--context", "hub") // again
	if left := time.Until(j.Expires); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the token can be used for %s", left)
	}
	attackWith(t, h, j.Token)
	givesNoMoreThanItHas(t, p, cluster, j.Args(t, "c1"))
	args := append(j.Args(t, "c1"), worksIn(t, cluster)...)

	// join and accept each wait for the other.
	joined := make(chan string, 1)
	join := p.Command(t, append(slices.Clone(args), "--context", "c1", "--timeout", "2m")...)
	joinOut := &harness.Buffer{}
	join.Stdout, join.Stderr = joinOut, joinOut
	go func() {
		if err := join.Run(); err != nil {
			joined <- err.Error()
		}
		close(joined)
	}()
	harness.Eventually(t, "join says what it waits for", func(context.Context) (bool, error) {
		return harness.Holds(strings.Contains(joinOut.String(), "the hub must accept it: kubectl hub accept --clusters c1"), joinOut)
	})
	checkAgentsRights(t, cluster)
	harness.Eventually(t, "the agent asks for a certificate, which accept tells of", func(ctx context.Context) (bool, error) {
		asked, err := harness.Kube(t, h.AdminConfig()).CertificatesV1().CertificateSigningRequests().
			List(ctx, metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=c1"})
		return err == nil && len(asked.Items) > 0, err
	})
	accepted := p.Must(t, "accept", "--clusters", "c1", "--wait", "--context", "hub")
	harness.Contains(t, accepted, "set hubAcceptsClient to true for managed cluster c1 (certificate, requested by "+
		"system:serviceaccount:open-cluster-management:agent-registration-bootstrap)", "c1 has joined and is available")
	if failed, ok := <-joined; ok {
		t.Fatalf("join: %s\n%s", failed, joinOut)
	}
	harness.Contains(t, joinOut.String(), "Cluster c1 has joined the hub "+j.Server, "It applies works with the rights of admin in these namespaces: web.")
	if strings.Contains(joinOut.String(), j.Token) || strings.Contains(node.Logs("", ""), j.Token) {
		t.Error("the token is printed")
	}
	harness.Contains(t, p.Must(t, "accept", "-c", "c1", "--context", "hub"), "hubAcceptsClient already set for managed cluster c1")

	showsTheCluster(t, p)
	// The agent needs all of these rights to report everything to the hub, and no others.
	c := harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Get(t.Context(), "c1", metav1.GetOptions{}))(t)
	if !slices.ContainsFunc(c.Status.ClusterClaims, func(c clusterv1.ManagedClusterClaim) bool { return c.Name == "id.k8s.io" }) {
		t.Errorf("the claims are %v", c.Status.ClusterClaims)
	}
	if strings.Contains(node.Logs("", ""), "forbidden") {
		t.Errorf("the agent lacks a right:\n%s", node.Logs("", ""))
	}

	bringsWhatItMay(t, h, cluster)

	// A second join changes nothing; omitted flags do not end works.
	harness.Contains(t, p.Must(t, append(slices.Clone(args), "--context", "c1")...), "has joined")
	if _, stderr, err := p.Run(t, append(j.Args(t, "c1"), "--context", "c1")...); err == nil || !strings.Contains(stderr, "--works=admin --works-namespaces=web") {
		t.Errorf("join without --works: %v: %s", err, stderr)
	}
	// The agent follows the hub to a different address.
	moved := slices.Clone(args)
	at := slices.Index(moved, "--hub-apiserver") + 1
	moved[at] = strings.Replace(moved[at], "127.0.0.1", "localhost", 1)
	_, stderr, err := p.Run(t, append(moved, "--context", "c1")...)
	if err != nil || !strings.Contains(stderr, "Warning: this cluster has joined the hub "+j.Server) {
		t.Errorf("join by another address: %v: %s", err, stderr)
	}
	kept := harness.Must(harness.Kube(t, cluster.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).
		Get(t.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{}))(t)
	harness.Contains(t, string(kept.Data[registration.KeyKubeconfig]), "https://localhost:")
	if _, stderr, err := p.Run(t, "unjoin", "--cluster-name", "c1", "--context", "c1"); err == nil || !strings.Contains(stderr, "choose by --works=delete or --works=keep") {
		t.Errorf("unjoin of an agent that has brought a work: %v: %s", err, stderr)
	}
	harness.Contains(t, p.Must(t, "unjoin", "--cluster-name", "c1", "--context", "c1", "--works=keep"), "The objects of its works are kept: ",
		"Cluster c1 has left", "kubectl delete managedcluster c1")
	c = harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Get(t.Context(), "c1", metav1.GetOptions{}))(t)
	if denied := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionHubAccepted); c.Spec.HubAcceptsClient ||
		denied == nil || denied.Status != metav1.ConditionFalse {
		t.Errorf("the hub still accepts it: %+v", c)
	}
	endsWorks(t, h, cluster, "hello")
	sameInventory(t, "the managed cluster", before, inventory(t, cluster))
	harness.Contains(t, p.Must(t, "unjoin", "--cluster-name", "c1", "--context", "c1"), "No agent found")
	if err := harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the hub has nothing left of it", func(context.Context) (bool, error) {
		left := difference(inventory(t, h), hubBefore)
		left = slices.DeleteFunc(left, func(name string) bool {
			// These objects are created by init, or by kube-controller-manager in its namespace.
			return strings.Contains(name, "clusterhub:bootstrap") || strings.HasPrefix(name, "Namespace open-cluster-management") ||
				strings.Contains(name, "open-cluster-management/")
		})
		return harness.Holds(len(left) == 0, left)
	})
}

// showsTheCluster runs all commands that show clusters.
func showsTheCluster(t *testing.T, p harness.Plugin) {
	t.Helper()
	harness.Eventually(t, "get clusters shows what the node has", func(context.Context) (bool, error) {
		out := p.Must(t, "get", "clusters", "--context", "hub")
		return harness.Holds(regexp.MustCompile(`(?m)^NAME +ACCEPTED +AVAILABLE +CLUSTERSET +CPU +MEMORY +KUBERNETES VERSION\n`+
			`c1 +true +True +default +4 +8Gi +v1\.\S+\n$`).MatchString(out), out)
	})

	// This set selects by labels.
	apply := p.Command(t, "version")
	apply.Path = harness.Binary(t, "kubectl")
	apply.Args = []string{"kubectl", "--context", "hub", "apply", "-f", "-"}
	apply.Stdin = strings.NewReader(`{"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
		"metadata": {"name": "production"},
		"spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "production"}}}}}`)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	harness.Contains(t, p.Must(t, "label", "c1", "env=production", "--context", "hub"), "managedcluster/c1 labeled")
	harness.Contains(t, p.Must(t, "members", "production", "--context", "hub"), "CLUSTER", "c1", "True")
	harness.Contains(t, p.Must(t, "get", "clusters", "--clusterset", "production", "--context", "hub"), "c1")
	harness.Eventually(t, "get clustersets counts", func(context.Context) (bool, error) {
		out := p.Must(t, "get", "clustersets", "--context", "hub")
		return harness.Holds(regexp.MustCompile(`(?m)^production +<none> +1 ManagedClusters selected +<none>$`).MatchString(out), out)
	})
	harness.Contains(t, p.Must(t, "__complete", "--context", "hub", "accept", "--clusters", "x,"), "x,c1\n")
}

// TestKubectlHub_UnjoinWithoutHub removes a cluster whose hub is unreachable, and a cluster that was never accepted. The token has the format of
// kubeadm's.
func TestKubectlHub_UnjoinWithoutHub(t *testing.T) {
	p, h, cluster, _ := hubAndCluster(t)
	before := inventory(t, cluster)
	appliesOnlyOurs(t, cluster.AdminConfig())
	j := p.Joining(t, "init", "--use-bootstrap-token", "--context", "hub")
	join := slices.DeleteFunc(j.Args(t, "c1"), func(arg string) bool { return arg == "--wait" })

	// A cluster that was never accepted has nothing to clean up on the hub. A namespace that existed before remains.
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace}}
	harness.Must(harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{}))(t)
	harness.Contains(t, p.Must(t, append(join, "--context", "c1")...), "The agent of cluster c1 is deployed", "kubectl hub accept --clusters c1")
	harness.Eventually(t, "the agent has begun", func(context.Context) (bool, error) {
		_, err := harness.Kube(t, cluster.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).
			Get(t.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{})
		return err == nil, err
	})
	harness.Contains(t, p.Must(t, "unjoin", "--cluster-name", "c1", "--context", "c1"), "The agent is removed. The hub was not notified")
	sameInventory(t, "the managed cluster", append(before, "Namespace "+registration.AgentNamespace), inventory(t, cluster))

	join = append(join, worksIn(t, cluster)...)
	// The agent that joins now has a different key than the agent that created the cluster, so it may belong to a different user.
	_, stderr, err := p.Run(t, append(join, "--context", "c1")...)
	if err != nil || !strings.Contains(stderr, "Warning: the hub already has a cluster c1") {
		t.Errorf("join under a known name: %v: %s", err, stderr)
	}
	_, stderr, err = p.Run(t, "accept", "--clusters", "c1", "--wait", "--timeout", "20s", "--context", "hub")
	request := regexp.MustCompile(`Certificate request (\S+) waits for an admin: it is for another key .*kubectl hub accept --clusters c1`).FindStringSubmatch(stderr)
	if err == nil || request == nil {
		t.Fatalf("accept of a cluster with another agent: %v: %s", err, stderr)
	}
	events := harness.Must(harness.Kube(t, cluster.AdminConfig()).CoreV1().Events(registration.AgentNamespace).List(t.Context(), metav1.ListOptions{}))(t)
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "NewKey" }) {
		t.Error("the agent has not said so in an event")
	}
	p.Must(t, "accept", "--clusters", "c1", "--csr", request[1], "--wait", "--context", "hub")

	// The hub does not respond. The objects of works remain with the agent until unjoin can continue.
	bringsWhatItMay(t, h, cluster)
	h.StopHubControllerManager() // it would exit without its lease
	h.KillFront(0)
	_, stderr, err = p.Run(t, "unjoin", "--cluster-name", "c1", "--context", "c1", "--works=delete", "--timeout", "40s")
	if err == nil || !strings.Contains(stderr, "connection reset") || !strings.Contains(stderr, "--force") {
		t.Errorf("unjoin without hub: %v: %s", err, stderr)
	}
	deployment := harness.Must(harness.Kube(t, cluster.AdminConfig()).AppsV1().Deployments(registration.AgentNamespace).
		Get(t.Context(), "hub-agent", metav1.GetOptions{}))(t)
	if *deployment.Spec.Replicas != 1 {
		t.Errorf("the agent has %d replicas after a failed unjoin", *deployment.Spec.Replicas)
	}
	if got := brought(t, cluster); got != "hello owned" {
		t.Errorf("after a failed unjoin the object is %q", got)
	}
	out, stderr, err := p.Run(t, "unjoin", "--cluster-name", "c1", "--context", "c1", "--works=delete", "--timeout", "40s", "--force")
	if err != nil {
		t.Fatalf("unjoin --force: %v: %s", err, stderr)
	}
	harness.Contains(t, out, "The objects of its works are deleted: ", "The agent is removed. The hub was not notified")
	harness.Contains(t, stderr, "Warning: the hub was not notified")
	endsWorks(t, nil, cluster, "")
	sameInventory(t, "the managed cluster", append(before, "Namespace "+registration.AgentNamespace), inventory(t, cluster))
	if err := h.StartFront(t.Context(), 0); err != nil { // for the next test with the hub
		t.Fatal(err)
	}
}
