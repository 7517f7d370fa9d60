// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// addContexts adds those of pages whose readers have several clusters: the hub, which is its own management cluster here, and c1.
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

// sayLogs says what the processes have said last.
func (h home) sayLogs(t *testing.T) {
	t.Helper()
	for _, file := range harness.Must(filepath.Glob(filepath.Join(h.dir, "_output", "hub", "logs", "*.log")))(t) {
		lines := strings.Split(string(harness.Must(os.ReadFile(file))(t)), "\n")
		t.Logf("%s ends with\n%s", filepath.Base(file), strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
}
