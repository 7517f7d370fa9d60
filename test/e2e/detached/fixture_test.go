// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/netns"
)

// patience is more than anything takes that works, on a machine with much else to do.
const patience = 2 * time.Minute

// eventually waits until something holds. What its error says is shown if it never does.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = ok()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, patience, last)
	}
}

// says waits until kubectl prints something on a cluster.
func says(t *testing.T, on *localhub.Hub, what, want string, args ...string) {
	t.Helper()
	eventually(t, what, func() error {
		if got, err := kubectl(t, on, args...); err != nil || !strings.Contains(got, want) {
			return fmt.Errorf("kubectl %s says %q, %w, want %q", strings.Join(args, " "), got, err, want)
		}
		return nil
	})
}

func kubectl(t *testing.T, on *localhub.Hub, args ...string) (string, error) {
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
	// The file has all that the admin of the managed cluster asks of it, which hub-operator is.
	sharedManagedAudit = sync.OnceValues(func() (flags []string, file string) { return harness.Audited(harness.Lasting(), "admin") })
)

// world is a hub, a cluster that runs the pods, and one that may run nothing and reaches nothing.
type world struct {
	*testing.T
	hub        *localhub.Hub
	management *harness.Management
	managed    *netns.Cluster
	plugin     harness.Plugin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, harness.Hub(t))
}

func newWorldOf(t *testing.T, hub *localhub.Hub) *world {
	t.Helper()
	w := &world{T: t, hub: hub, management: sharedManagement(), managed: sharedManaged()}
	w.plugin = harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Hub{"hub": w.hub, "mgmt": w.management.Hub})}
	for _, server := range []*localhub.Hub{w.hub, w.managed.Hub} {
		if err := w.management.Node.Reach(addressOf(t, server)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func addressOf(t *testing.T, h *localhub.Hub) string {
	t.Helper()
	return harness.Must(url.Parse(h.AdminConfig().Host))(t).Host
}

// joined is a managed cluster by a Klusterlet of its own.
type joined struct {
	*world
	// name is that of the Klusterlet and of the cluster, and namespace that of its pods.
	name, namespace string
	// way is how a cluster joins the hub.
	way harness.Joining
	// before is what there was on each cluster before the Klusterlet.
	before struct{ hub, management, managed []string }
}

// current is the cluster that has joined, if there is one. The tests share it: a cluster joins a hub once.
var current *joined

// joined is a cluster that has joined and has a work.
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

// newJoined is a cluster that is about to join.
func (w *world) newJoined() *joined {
	w.Helper()
	j := &joined{world: w, name: harness.Unique("detached")}
	j.namespace = j.name + "-open-cluster-management-agent"
	j.way = w.plugin.Joining(w.T, "init", "--context", "hub") // what it makes stays on the hub
	j.before.hub, j.before.management, j.before.managed = inventory(w.T, w.hub.AdminConfig()), inventory(w.T, w.management.AdminConfig()), inventory(w.T, w.managed.AdminConfig())
	return j
}

// join has a cluster join by the command that the hub prints, and what is added to it for a cluster that may run nothing.
func (w *world) join() *joined {
	w.Helper()
	j := w.newJoined()
	join := harness.Begin(w.T, w.plugin.Command(w.T, append(j.way.Args(w.T, j.name), "--mode=detached", "--management-context=mgmt",
		"--managed-kubeconfig="+w.managed.AdminKubeconfig(), "--works=admin", "--operator-image="+harness.OperatorImage)...))
	eventually(w.T, "the cluster asks to join", func() error {
		select {
		case <-join.Ended:
			stdout, stderr, err := join.End()
			w.Fatalf("kubectl hub join ends before: %v\n%s%s", err, stdout, stderr)
		default:
		}
		_, err := kubectl(w.T, w.hub, "get", "managedcluster", j.name)
		return err
	})
	w.plugin.Must(w.T, "accept", "--clusters", j.name, "--context", "hub")
	stdout, stderr, err := join.End()
	if err != nil {
		w.Fatalf("kubectl hub join: %v\n%s%s", err, stdout, stderr)
	}
	wantShown(w.T, stderr+stdout, "kubectl hub join --mode=detached", "c1", j.name, "https://hub.example.com", j.way.Server)
	j.isAvailable()
	return j
}

// isAvailable waits until the hub says what the commands have waited for, too.
func (j *joined) isAvailable() {
	j.Helper()
	for _, condition := range []string{"ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		says(j.T, j.hub, "the cluster is "+condition, "True", "get", "managedcluster", j.name, "-o",
			fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].status}`, condition))
	}
}

const klusterlet = `
apiVersion: operator.open-cluster-management.io/v1
kind: Klusterlet
metadata: {name: %[1]s}
spec:
  clusterName: %[1]s
  deployOption: {mode: Detached}
`

// joinByHand has a cluster join without kubectl hub join.
func (w *world) joinByHand() *joined {
	w.Helper()
	j := w.newJoined()
	harness.MustKubectlOf(w.T, w.management.Hub, fmt.Sprintf(klusterlet, j.name), "apply", "-f", "-")
	// The namespace is there before the secrets, for them.
	says(w.T, w.management.Hub, "the namespace is made", "Active", "get", "namespace", j.namespace, "-o", "jsonpath={.status.phase}")
	j.condition("ReadyToApply", "False KlusterletPrepareFailed")
	j.secret("external-managed-kubeconfig", harness.Must(os.ReadFile(j.managed.AdminKubeconfig()))(j.T))
	j.secret("bootstrap-hub-kubeconfig", j.bootstrap())
	j.condition("ReadyToApply", "True KlusterletPrepared")
	j.condition("Applied", "True KlusterletApplied")
	says(w.T, w.hub, "the cluster asks to join", j.name, "get", "managedclusters")
	w.plugin.Must(w.T, "accept", "--clusters", j.name, "--wait", "--timeout", "2m", "--context", "hub")
	j.condition("Available", "True")
	j.isAvailable()
	return j
}

// condition waits until the Klusterlet has a condition, "STATUS REASON MESSAGE".
func (j *joined) condition(kind, want string) {
	j.Helper()
	says(j.T, j.management.Hub, "the Klusterlet is "+kind, want, "get", "klusterlet", j.name, "-o",
		fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type==%q)]}{.status} {.reason} {.message}{end}`, kind))
}

// secret gives the Klusterlet what the user has to give.
func (j *joined) secret(name string, kubeconfig []byte) {
	j.Helper()
	file := filepath.Join(j.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		j.Fatal(err)
	}
	harness.MustKubectlOf(j.T, j.management.Hub, "", "create", "secret", "generic", name, "-n", j.namespace, "--from-file=kubeconfig="+file)
}

// bootstrap is a kubeconfig by which clusters join the hub.
func (j *joined) bootstrap() []byte {
	j.Helper()
	return harness.Must(clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: j.way.Server, CertificateAuthorityData: harness.Must(base64.StdEncoding.DecodeString(j.way.CA))(j.T)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: j.way.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "bootstrap"}},
		CurrentContext: "hub",
	}))(j.T)
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

// brings has the agent bring something. The work has a name of its own: agents of one cluster for one hub have one record for works of one
// name, and each would take away what the other's work has brought.
func (j *joined) brings() {
	j.Helper()
	j.bringsBy(j.name, j.name)
}

// bringsBy has the agent bring a ConfigMap by a work.
func (j *joined) bringsBy(name, object string) {
	j.Helper()
	harness.MustKubectlOf(j.T, j.hub, fmt.Sprintf(work, j.name, name, object), "apply", "-f", "-")
	says(j.T, j.managed.Hub, "the work "+name+" lands", "hello", "get", "configmap", object, "-o", "jsonpath={.data.text}")
	says(j.T, j.hub, "the work "+name+" is available", "True", "get", "manifestwork", name, "-n", j.name, "-o",
		`jsonpath={.status.conditions[?(@.type=="Available")].status}`)
}
