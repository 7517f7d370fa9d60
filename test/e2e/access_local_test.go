// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
)

// localTimeout is for clusters that have to start on a machine with much else to do.
const localTimeout = 3 * time.Minute

// localClusters is a hub with its controllers and the provider of the example, whose clusters trust the issuers of tests.
type localClusters struct {
	hub    *localhub.Hub
	client client.Client
	dir    string
	args   []string
}

func newLocalClusters(t *testing.T) *localClusters {
	t.Helper()
	issuers := filepath.Join(t.TempDir(), "issuers.crt")
	if err := os.WriteFile(issuers, fakeoidc.NewIssuer(t).CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	return clustersOn(t, ownHub(t, func(c *localhub.Config) {
		c.WithoutKubeControllerManager = true
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
	}), "--issuer-ca-file="+issuers)
}

// clustersOn has the provider of the example run for a hub.
func clustersOn(t *testing.T, h *localhub.Hub, args ...string) *localClusters {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &localClusters{args: args, hub: h}
	l.dir = filepath.Join(l.hub.Dir(), "cluster-provider")
	l.client = must(client.New(l.hub.AdminConfig(), client.Options{Scheme: scheme}))(t)
	l.kubectl(t, "apply", "-f", l.example("provider.yaml"))
	l.start(t)
	l.kubectl(t, "apply", "-f", l.example("cluster.yaml"))
	return l
}

func (l *localClusters) example(name string) string {
	return filepath.Join(hubConfig("").Root, "artifacts", "examples", "access", name)
}

func (l *localClusters) start(t *testing.T) {
	t.Helper()
	if err := l.hub.StartLocalProvider(t.Context(), "dev", "local", l.args...); err != nil {
		t.Fatal(err)
	}
}

func (l *localClusters) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := l.hub.Kubectl(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

func (l *localClusters) await(t *testing.T, what string, object client.Object, ok func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, localTimeout, true, func(ctx context.Context) (bool, error) {
		if last = l.client.Get(ctx, client.ObjectKeyFromObject(object), object); last == nil {
			last = ok()
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, localTimeout, last)
	}
}

// awaitCluster waits until a Cluster is in a phase, and returns what its condition says.
func (l *localClusters) awaitCluster(t *testing.T, name, phase string) (message string) {
	t.Helper()
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name}}
	l.await(t, name+" is "+phase, cluster, func() error {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, "Ready")
		if cluster.Status.Phase != phase || ready == nil {
			return fmt.Errorf("%+v", cluster.Status)
		}
		message = ready.Message
		return nil
	})
	return message
}

// folder is that of a cluster.
func (l *localClusters) folder(t *testing.T, name string) string {
	t.Helper()
	cluster := &v1alpha1.Cluster{}
	if err := l.client.Get(t.Context(), types.NamespacedName{Namespace: "teams", Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(l.dir, "clusters", string(cluster.UID))
}

// processes have a folder in their command lines.
func (l *localClusters) processes(t *testing.T, folder string) (lines []string) {
	t.Helper()
	files := must(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	if len(files) == 0 {
		t.Skip("there is no /proc")
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), folder+"/") {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

func TestAccessLocal(t *testing.T) {
	t.Parallel()
	l := newLocalClusters(t)
	l.awaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	t.Run("oidc", l.trustsIssuers)
	t.Run("restart", l.saysThatItRestarts)
	t.Run("init", l.initializesWhileItRuns)
	t.Run("dead", l.noticesADeadServer)
	t.Run("leftover", l.removesWhatIsLeftOver)
}

func (l *localClusters) initializesWhileItRuns(t *testing.T) {
	args := append([]string{"local", "init", "--environment=dev", "--provider-name=local", "--kubeconfig=" + l.hub.AdminKubeconfig(),
		"--dir=" + l.dir, "--bin-dir=" + hubConfig("").BinDir}, l.args...)
	if out, err := exec.CommandContext(t.Context(), binary(t, "cluster-provider"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func (l *localClusters) noticesADeadServer(t *testing.T) {
	file := filepath.Join(l.folder(t, "blue"), "kube-apiserver.pid")
	pid := must(strconv.Atoi(strings.TrimSpace(string(must(os.ReadFile(file))(t)))))(t)
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	message := l.awaitCluster(t, "blue", v1alpha1.StatusPhaseProgressing)
	// The next time that it would be looked at anyway is minutes away.
	if took := time.Since(killed); took > time.Minute || !strings.HasPrefix(message, "kube-apiserver is not ready yet") {
		t.Errorf("after %s: %s", took, message)
	}
	l.awaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	t.Logf("the cluster was away for %s", time.Since(killed).Round(time.Second))
	if again := string(must(os.ReadFile(file))(t)); strings.TrimSpace(again) == strconv.Itoa(pid) {
		t.Error("kube-apiserver was not started again")
	}
}

// removesWhatIsLeftOver ends the provider, and lets a Cluster vanish meanwhile.
func (l *localClusters) removesWhatIsLeftOver(t *testing.T) {
	green := openmcpCluster("teams", "dev.local.default")
	green.Name = "green"
	if err := l.client.Create(t.Context(), green); err != nil {
		t.Fatal(err)
	}
	l.awaitCluster(t, "green", v1alpha1.StatusPhaseReady)
	folder, kept := l.folder(t, "green"), l.folder(t, "blue")
	if len(l.processes(t, folder)) != 2 {
		t.Errorf("green has the processes %q", l.processes(t, folder))
	}
	l.hub.StopLocalProvider()
	if left := l.processes(t, l.dir); len(left) > 0 {
		t.Errorf("the provider has ended, and these run: %q", left)
	}
	l.kubectl(t, "patch", "cluster", "green", "-n", "teams", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	l.kubectl(t, "delete", "cluster", "green", "-n", "teams")
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	l.start(t)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, localTimeout, true, func(context.Context) (bool, error) {
		_, err := os.Stat(folder)
		return os.IsNotExist(err), nil
	})
	if err != nil {
		t.Errorf("the folder of a cluster that is gone is left: %v", err)
	}
	l.awaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	if _, err := os.Stat(kept); err != nil || len(l.processes(t, folder)) > 0 {
		t.Errorf("%v, processes %q", err, l.processes(t, folder))
	}
}
