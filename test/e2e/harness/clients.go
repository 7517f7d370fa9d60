// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
)

// RESTClient writes clusters as they are.
func RESTClient(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	return Ours(t, config).ClusterV1().RESTClient()
}

// Ours is a client of our kinds.
func Ours(t *testing.T, config *rest.Config) versioned.Interface {
	t.Helper()
	return Must(versioned.NewForConfig(config))(t)
}

// ClientConfig is that of a kubeconfig, without a limit of its rate.
func ClientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// Kube is a client of Kubernetes' kinds.
func Kube(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	return Must(kubernetes.NewForConfig(config))(t)
}

// Admin is a client of our kinds on the shared hub, as its admin.
func Admin(t *testing.T) versioned.Interface {
	t.Helper()
	return Ours(t, Hub(t).AdminConfig())
}

// Warnings keeps the Warning headers of a client's answers.
type Warnings struct {
	mu  sync.Mutex
	All []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.All = append(w.All, text)
}

// Has is whether one of them has all parts in it.
func (w *Warnings) Has(parts ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.All {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(text, part)
		}
		if found {
			return true
		}
	}
	return false
}

// Warned is a config whose clients keep the warnings that they get.
func Warned(config *rest.Config) (*rest.Config, *Warnings) {
	w := &Warnings{}
	config.WarningHandler = w
	return config, w
}

// Get asks for a path of a server.
func Get(t *testing.T, config *rest.Config, path string) (string, error) {
	t.Helper()
	data, err := Kube(t, config).Discovery().RESTClient().Get().RequestURI(path).DoRaw(t.Context())
	return string(data), err
}
