// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// addContexts adds the contexts of pages whose readers have several clusters: the hub, which is its own management cluster here, and c1.
func (h home) addContexts(t *testing.T) {
	t.Helper()
	file := filepath.Join(h.dir, "_output", "hub", "admin.kubeconfig")
	config := harness.Must(clientcmd.LoadFromFile(file))(t)
	admin := config.Contexts[config.CurrentContext]
	config.Contexts["hub"], config.Contexts["mgmt"] = admin, admin
	its := harness.Must(clientcmd.LoadFromFile(filepath.Join(h.dir, "_output", "hub", "cluster-1", "admin.kubeconfig")))(t)
	context := its.Contexts[its.CurrentContext]
	config.Clusters["c1"], config.AuthInfos["c1"] = its.Clusters[context.Cluster], its.AuthInfos[context.AuthInfo]
	context.Cluster, context.AuthInfo = "c1", "c1"
	config.Contexts["c1"] = context
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// owns replaces a link to a folder of the repository by a copy, as pages change its files.
func (h home) owns(t *testing.T, folder string) {
	t.Helper()
	link := filepath.Join(h.dir, folder)
	of := harness.Must(os.Readlink(link))(t)
	if err := errors.Join(os.Remove(link), os.CopyFS(link, os.DirFS(of))); err != nil {
		t.Fatal(err)
	}
}

// startNode adds a node to a cluster for a page: its pods are processes of this machine, and reach the other cluster. On other pages c1 has no node,
// and the hub has that of `make up`, which runs only the pods of hub-operator.
func (h home) startNode(t *testing.T, cluster string) {
	t.Helper()
	config, reach := (*rest.Config)(nil), []string(nil)
	for name, file := range map[string]string{"hub": "admin.kubeconfig", "c1": "cluster-1/admin.kubeconfig"} {
		its := harness.Must(clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "_output", "hub", file)))(t)
		if name == cluster {
			config = its
			continue
		}
		reach = append(reach, harness.Must(url.Parse(its.Host))(t).Host)
	}
	nodes := harness.Kube(t, config).CoreV1().Nodes()
	t.Cleanup(func() { // after the kubelet has stopped, which would recreate it
		if err := nodes.Delete(context.WithoutCancel(t.Context()), "node-1", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	kubelet.Start(t, kubelet.Config{Cluster: config, BinDir: harness.BinDir(t), ImagesDir: harness.ImagesDir(), Reach: reach})
}

// goEnv returns the variables for the caches of go, wherever the home is.
func goEnv(t *testing.T) (env []string) {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH"}
	out := harness.Must(exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output())(t)
	for i, value := range strings.Split(strings.TrimRight(string(out), "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	// These are the settings of the Makefile and of hack/test.sh, so that builds of a different folder are reused here.
	return append(env, "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOGC="+cmp.Or(os.Getenv("GOGC"), "100"))
}

// sayLogs prints the last log lines of the processes.
func (h home) sayLogs(t *testing.T) {
	t.Helper()
	for _, file := range harness.Must(filepath.Glob(filepath.Join(h.dir, "_output", "hub", "logs", "*.log")))(t) {
		lines := strings.Split(string(harness.Must(os.ReadFile(file))(t)), "\n")
		t.Logf("%s ends with\n%s", filepath.Base(file), strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
}
