// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
)

// localClusters trust the issuers of tests.
type localClusters struct{ *harness.LocalClusters }

func newLocalClusters(t *testing.T) *localClusters {
	t.Helper()
	issuers := filepath.Join(t.TempDir(), "issuers.crt")
	if err := os.WriteFile(issuers, fakeoidc.NewIssuer(t).CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := harness.LendHub(t)
	startControllers(t, hub)
	t.Cleanup(hub.StopLocalProvider)
	return &localClusters{harness.StartLocalClusters(t, hub, "--issuer-ca-file="+issuers)}
}

// processes returns the command lines of the processes that mention a folder.
func (l *localClusters) processes(t *testing.T, folder string) (lines []string) {
	t.Helper()
	files := harness.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
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
	l := newLocalClusters(t)
	l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	t.Run("oidc", l.trustsIssuers)
	t.Run("restart", l.saysThatItRestarts)
	t.Run("init", l.initializesWhileItRuns)
	t.Run("dead", l.noticesADeadServer)
	t.Run("leftover", l.removesWhatIsLeftOver)
}

func (l *localClusters) initializesWhileItRuns(t *testing.T) {
	args := append([]string{"local", "init", "--environment=dev", "--provider-name=local", "--kubeconfig=" + l.Hub.AdminKubeconfig(),
		"--dir=" + l.Dir, "--bin-dir=" + harness.BinDir(t)}, l.Args...)
	if out, err := exec.CommandContext(t.Context(), harness.Binary(t, "cluster-provider"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func (l *localClusters) noticesADeadServer(t *testing.T) {
	// On a slow machine kube-apiserver may still restart for the requests that the previous subtest deleted.
	l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	file := filepath.Join(l.Folder(t, "blue"), "kube-apiserver.pid")
	pid := harness.Must(strconv.Atoi(strings.TrimSpace(string(harness.Must(os.ReadFile(file))(t)))))(t)
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue"}}
	l.Await(t, "the Cluster reports the server that is down", blue, func() error {
		if ready := meta.FindStatusCondition(blue.Status.Conditions, "Ready"); blue.Status.Phase != v1alpha1.StatusPhaseProgressing ||
			ready == nil || !strings.HasPrefix(ready.Message, "kube-apiserver is not ready yet") {
			return fmt.Errorf("%+v", blue.Status)
		}
		return nil
	})
	// The next periodic check is minutes away.
	if took := time.Since(killed); took > time.Minute {
		t.Errorf("the Cluster is Progressing after %s, want less than a minute", took)
	}
	l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	t.Logf("the cluster was away for %s", time.Since(killed).Round(time.Second))
	if again := string(harness.Must(os.ReadFile(file))(t)); strings.TrimSpace(again) == strconv.Itoa(pid) {
		t.Error("kube-apiserver was not started again")
	}
}

// removesWhatIsLeftOver stops the provider, and removes a Cluster before the provider starts again.
func (l *localClusters) removesWhatIsLeftOver(t *testing.T) {
	green := harness.OpenMCPCluster("teams", "dev.local.default")
	green.Name = "green"
	if err := l.Client.Create(t.Context(), green); err != nil {
		t.Fatal(err)
	}
	l.AwaitCluster(t, "green", v1alpha1.StatusPhaseReady)
	folder, kept := l.Folder(t, "green"), l.Folder(t, "blue")
	if len(l.processes(t, folder)) != 2 {
		t.Errorf("green has the processes %q", l.processes(t, folder))
	}
	l.Hub.StopLocalProvider()
	if left := l.processes(t, l.Dir); len(left) > 0 {
		t.Errorf("the provider has ended, and these run: %q", left)
	}
	harness.MustKubectlOf(t, l.Hub, "", "patch", "cluster", "green", "-n", "teams", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	harness.MustKubectlOf(t, l.Hub, "", "delete", "cluster", "green", "-n", "teams")
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	l.Start(t)
	err := await.Until(t.Context(), harness.Timeout, func(context.Context) (bool, error) {
		_, err := os.Stat(folder)
		return os.IsNotExist(err), nil
	})
	if err != nil {
		t.Errorf("the folder of a cluster that is gone is left: %v", err)
	}
	l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	if _, err := os.Stat(kept); err != nil || len(l.processes(t, folder)) > 0 {
		t.Errorf("%v, processes %q", err, l.processes(t, folder))
	}
}
