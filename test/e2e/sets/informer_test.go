// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	informers "github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// churnEnv is set when this test's binary runs as the client: client-go reads its feature gates when a process starts.
const churnEnv = "CLUSTERHUB_E2E_CHURN_KUBECONFIG"

// TestInformers_MatchList runs informers of all our kinds during churn and restarts of the server, with and without streamed lists, and with
// client-go's own inconsistency detectors, which panic.
func TestInformers_MatchList(t *testing.T) {
	if kubeconfig := os.Getenv(churnEnv); kubeconfig != "" {
		churn(t, kubeconfig)
		return
	}
	h := harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) { c.WithoutHubControllerManager = false })
	for _, streamed := range []string{"true", "false"} {
		t.Run("streamed lists "+streamed, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInformers_MatchList$", "-test.v")
			cmd.Env = append(os.Environ(), churnEnv+"="+h.AdminKubeconfig(), "KUBE_FEATURE_WatchListClient="+streamed,
				"KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true", "KUBE_CACHE_MUTATION_DETECTOR=true", "CLUSTERHUB_E2E_NAME="+harness.Unique("churn"))
			stdin := harness.Must(cmd.StdinPipe())(t)
			stdout := harness.Must(cmd.StdoutPipe())(t)
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				said.WriteString(lines.Text() + "\n")
				if lines.Text() == "restart the server" {
					restart(t, h)
					_, _ = fmt.Fprintln(stdin, "done")
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v:\n%s", err, said.String())
			}
		})
	}
}

func restart(t *testing.T, h *localhub.Instance) {
	t.Helper()
	h.KillHubAPIServer(0)
	if err := h.StartHubAPIServer(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.RouteFront(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// churn runs the client.
func churn(t *testing.T, kubeconfig string) {
	config := harness.Must(harness.ClientConfig(kubeconfig))(t)
	client := harness.Must(versioned.NewForConfig(config))(t)
	name := os.Getenv("CLUSTERHUB_E2E_NAME")
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(command.ForCache))
	members := factory.View().V1alpha1().ClusterSetMembers().Informer()
	clusters := factory.Cluster().V1().ManagedClusters().Informer()
	sets := factory.Cluster().V1beta2().ManagedClusterSets().Informer()
	bindings := factory.Cluster().V1beta2().ManagedClusterSetBindings().Informer()
	seen := &tally{names: map[string]bool{}}
	harness.Must(members.AddEventHandler(seen.handler()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), members.HasSynced, clusters.HasSynced, sets.HasSynced, bindings.HasSynced) {
		t.Fatal("the informers do not sync")
	}
	retry := func(what string, f func() error) {
		harness.Eventually(t, what, func(context.Context) (bool, error) { err := f(); return err == nil, err })
	}
	for round := range 3 {
		for i := range 30 {
			c := harness.ManagedCluster(fmt.Sprintf("%s-%d-%d", name, round, i), map[string]string{harness.SetLabel: fmt.Sprintf("%s-%d", name, i%3)})
			retry("create", func() error {
				_, err := client.ClusterV1().ManagedClusters().Create(ctx, c, metav1.CreateOptions{})
				return err
			})
			if i == 15 {
				s := harness.LegacySet(fmt.Sprintf("%s-%d", name, round))
				retry("create a set", func() error {
					_, err := client.ClusterV1beta2().ManagedClusterSets().Create(ctx, s, metav1.CreateOptions{})
					return err
				})
			}
			if i%4 == 3 {
				gone := fmt.Sprintf("%s-%d-%d", name, round, i-1)
				retry("delete", func() error { return client.ClusterV1().ManagedClusters().Delete(ctx, gone, metav1.DeleteOptions{}) })
			}
		}
		if round == 1 {
			fmt.Println("restart the server")
			_, _ = fmt.Scanln(new(string))
		}
	}
	harness.Eventually(t, "the informer has what a list has", func(ctx context.Context) (bool, error) {
		list, err := client.ViewV1alpha1().ClusterSetMembers().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		want := map[string]bool{}
		for _, m := range list.Items {
			want[m.Name] = true
		}
		got := map[string]bool{}
		for _, key := range members.GetStore().ListKeys() {
			got[key] = true
		}
		if !maps.Equal(got, want) || !maps.Equal(seen.now(), want) {
			return false, fmt.Errorf("the store has %d, the events amount to %d, the list has %d", len(got), len(seen.now()), len(want))
		}
		return true, nil
	})
}

// tally is the result of the events of an informer.
type tally struct {
	mu    sync.Mutex
	names map[string]bool
}

func (s *tally) now() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.names)
}

func (s *tally) handler() cache.ResourceEventHandler {
	set := func(obj any, there bool) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if there {
			s.names[key] = true
		} else {
			delete(s.names, key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { set(obj, true) },
		DeleteFunc: func(obj any) { set(obj, false) },
	}
}

func TestExample_WatchMembersPrintsChanges(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "watch-members")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, harness.Root+"/examples/watch-members").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	set := harness.Unique("set")
	harness.NewSet(t, set)
	cmd := exec.CommandContext(t.Context(), binary, "--kubeconfig", harness.Hub(t).AdminKubeconfig(), "--set", set)
	out := harness.Must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := make(chan string, 10)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	name := harness.Unique("cluster")
	harness.NewManagedCluster(t, name, map[string]string{harness.SetLabel: set})
	expect := func(want string) {
		t.Helper()
		select {
		case line := <-lines:
			if !strings.HasSuffix(line, want) {
				t.Errorf("it printed %q, want %q", line, want)
			}
		case <-time.After(harness.Timeout):
			t.Fatalf("it did not print %q", want)
		}
	}
	expect(name + " joins " + set)
	harness.MustKubectl(t, "", "label", "managedcluster", name, "--overwrite", harness.SetLabel+"=default")
	expect(name + " leaves " + set)
}
