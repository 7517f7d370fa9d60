// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/netns"
)

// eventually waits until a condition holds. It prints the last error if the condition never holds.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	harness.Eventually(t, what, func(context.Context) (bool, error) {
		err := ok()
		return err == nil, err
	})
}

// says waits until kubectl prints a text on a cluster.
func says(t *testing.T, on *localhub.Instance, what, want string, args ...string) {
	t.Helper()
	eventually(t, what, func() error {
		if got, err := kubectl(t, on, args...); err != nil || !strings.Contains(got, want) {
			return fmt.Errorf("kubectl %s says %q, %w, want %q", strings.Join(args, " "), got, err, want)
		}
		return nil
	})
}

func kubectl(t *testing.T, on *localhub.Instance, args ...string) (string, error) {
	t.Helper()
	out, err := on.Kubectl(t.Context(), args...).CombinedOutput()
	return string(out), err
}

// The tests share these. The first command that needs hub-operator on the management cluster installs it there.
var (
	sharedManagement = sync.OnceValue(func() *harness.Management { return harness.StartManagement(harness.Lasting()) })
	sharedManaged    = sync.OnceValue(func() *netns.Cluster {
		flags, _ := sharedManagedAudit()
		return netns.Start(harness.Lasting(), netns.Config{BinDir: harness.HubConfig("").BinDir, FrontArgs: flags})
	})
	// The file has all requests of the admin of the managed cluster, whose identity hub-operator has.
	sharedManagedAudit = sync.OnceValues(func() (flags []string, file string) { return harness.Audited(harness.Lasting(), "admin") })
)

// world is a hub, a management cluster that runs the pods, and a managed cluster that runs no pods and reaches no other cluster.
type world struct {
	*testing.T
	hub        *localhub.Instance
	management *harness.Management
	managed    *netns.Cluster
	plugin     harness.Plugin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// The clusters start concurrently.
	var starting sync.WaitGroup
	starting.Go(func() { sharedManagement() })
	starting.Go(func() { sharedManaged() })
	hub := harness.Hub(t)
	starting.Wait()
	return newWorldOf(t, hub)
}

func newWorldOf(t *testing.T, hub *localhub.Instance) *world {
	t.Helper()
	w := &world{T: t, hub: hub, management: sharedManagement(), managed: sharedManaged()}
	w.plugin = harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": w.hub, "mgmt": w.management.Instance})}
	for _, server := range []*localhub.Instance{w.hub, w.managed.Instance} {
		if err := w.management.Node.Reach(addressOf(t, server)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func addressOf(t *testing.T, h *localhub.Instance) string {
	t.Helper()
	return harness.Must(url.Parse(h.AdminConfig().Host))(t).Host
}

// joined is a managed cluster with its own Klusterlet.
type joined struct {
	*world
	// name is the name of the Klusterlet and of the cluster, and namespace the namespace of its pods.
	name, namespace string
	// way is the configuration with which a cluster joins the hub.
	way harness.Joining
	// before has the inventory of each cluster before the Klusterlet.
	before struct{ hub, management, managed []string }
}

// current is the joined cluster, or nil. The tests share it: a cluster joins a hub once.
var current *joined

// joined returns a cluster that has joined and has a work.
func (w *world) joined() *joined {
	w.Helper()
	if current == nil {
		j := w.join()
		j.brings()
		current = j
	}
	j := *current
	j.world = w
	return &j
}

// newJoined returns a cluster that is about to join.
func (w *world) newJoined(name string) *joined {
	w.Helper()
	j := &joined{world: w, name: name}
	j.namespace = j.name + "-open-cluster-management-agent"
	j.way = w.plugin.Joining(w.T, "init", "--context", "hub") // the objects of init remain on the hub
	j.before.hub, j.before.management, j.before.managed = settled(w.T, w.hub.AdminConfig()), settled(w.T, w.management.AdminConfig()), settled(w.T, w.managed.AdminConfig())
	return j
}

// join has a cluster join by the commands of docs/detached.md for a cluster that may run no pods.
func (w *world) join() *joined {
	w.Helper()
	j := w.newJoined(harness.Unique("detached"))
	r := newReader(w.T, map[string]*localhub.Instance{"hub": w.hub, "mgmt": w.management.Instance})
	withKubeconfig(w.T, r, j.name+".kubeconfig", w.managed.Instance)
	r.Instead(j.texts()...)
	if _, err := kubectl(w.T, w.management.Instance, "get", "-n", "clusterhub-operator", "deployment/hub-operator"); err == nil {
		r.Instead(installed, "")
	}
	r.Types(shown(w.T, "TestDetached_ClusterWithoutNodesJoinsAndGetsWorks", "kubectl hub join", "kubectl hub accept"))
	j.isAvailable()
	return j
}

// isAvailable waits until the hub reports the state that the commands have waited for.
func (j *joined) isAvailable() {
	j.Helper()
	for _, condition := range []string{"ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		says(j.T, j.hub, "the cluster is "+condition, "True", "get", "managedcluster", j.name, "-o",
			fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].status}`, condition))
	}
}

// asksByHand requests to join without kubectl hub join, by the commands of docs/detached.md. hub-operator is installed already.
func (w *world) asksByHand(name string) *joined {
	w.Helper()
	j := w.newJoined(name)
	r := newReader(w.T, map[string]*localhub.Instance{"mgmt": w.management.Instance})
	withKubeconfig(w.T, r, j.name+".kubeconfig", w.managed.Instance)
	// Other Klusterlets may be listed.
	r.Instead(append(j.texts(), "WAITING FOR\n", "WAITING FOR\n…\n", "kubectl hub accept --clusters c1\n", "kubectl hub accept --clusters "+j.name+"\n…\n")...)
	r.Types(shown(w.T, "TestDetached_BareClustersServeAsHubs", "kubectl config"))
	return j
}

// joinByHand has a cluster join this way.
func (w *world) joinByHand() *joined {
	w.Helper()
	j := w.asksByHand(harness.Unique("detached"))
	w.plugin.Must(w.T, "accept", "--clusters", j.name, "--wait", "--timeout", "2m", "--context", "hub")
	j.condition("Available", "True")
	j.isAvailable()
	return j
}

// condition waits until the Klusterlet has a condition, "STATUS REASON MESSAGE".
func (j *joined) condition(kind, want string) {
	j.Helper()
	says(j.T, j.management.Instance, "the Klusterlet is "+kind, want, "get", "klusterlet", j.name, "-o",
		fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type==%q)]}{.status} {.reason} {.message}{end}`, kind))
}

// texts returns replacements for the texts of docs/detached.md.
func (j *joined) texts() []string {
	return []string{"c1", j.name, "eyJhbGci…", j.way.Token, "LS0tLS1C…", j.way.CA, "https://hub.example.com", j.way.Server,
		"--works=admin", "--works=admin --operator-image=" + harness.OperatorImage}
}

const work = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: %[3]s, namespace: default}, data: {text: hello}}
`

// brings has the agent apply an object. The name of the work is unique: the agents of one cluster for one hub share one record for works of the same
// name, and each would delete the objects of the other's work.
func (j *joined) brings() {
	j.Helper()
	j.bringsBy(j.name, j.name)
}

// bringsBy has the agent apply a ConfigMap by a work.
func (j *joined) bringsBy(name, object string) {
	j.Helper()
	harness.MustKubectlOf(j.T, j.hub, fmt.Sprintf(work, j.name, name, object), "apply", "-f", "-")
	says(j.T, j.managed.Instance, "the work "+name+" lands", "hello", "get", "configmap", object, "-o", "jsonpath={.data.text}")
	says(j.T, j.hub, "the work "+name+" is available", "True", "get", "manifestwork", name, "-n", j.name, "-o",
		`jsonpath={.status.conditions[?(@.type=="Available")].status}`)
}
