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

// RESTClient returns a client for writing ManagedClusters as raw bodies.
func RESTClient(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	return Ours(t, config).ClusterV1().RESTClient()
}

// Ours returns a client of the API groups of the hub.
func Ours(t *testing.T, config *rest.Config) versioned.Interface {
	t.Helper()
	return Must(versioned.NewForConfig(config))(t)
}

// ClientConfig returns the client configuration of a kubeconfig, without a rate limit.
func ClientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// Kube returns a client of the API groups of Kubernetes.
func Kube(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	return Must(kubernetes.NewForConfig(config))(t)
}

// Admin returns a client of the API groups of the hub, as the admin of the shared hub.
func Admin(t *testing.T) versioned.Interface {
	t.Helper()
	return Ours(t, Hub(t).AdminConfig())
}

// Warnings records the Warning headers of the responses to a client.
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

// Has reports whether a warning contains all parts.
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

// Warned returns a config whose clients record the warnings that they receive.
func Warned(config *rest.Config) (*rest.Config, *Warnings) {
	w := &Warnings{}
	config.WarningHandler = w
	return config, w
}

// Get requests a path of a server.
func Get(t *testing.T, config *rest.Config, path string) (string, error) {
	t.Helper()
	data, err := Kube(t, config).Discovery().RESTClient().Get().RequestURI(path).DoRaw(t.Context())
	return string(data), err
}
