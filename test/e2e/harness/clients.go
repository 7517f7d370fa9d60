// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
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

// OpenAPIModel describes a type in an OpenAPI document.
type OpenAPIModel struct {
	Description string
	Properties  map[string]struct{ Description string }
}

// OpenAPIModels returns the models in the OpenAPI document of a group and version, which the front lists shortly after it serves the group.
func OpenAPIModels(t *testing.T, groupVersion string) map[string]OpenAPIModel {
	t.Helper()
	index := struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}{}
	Eventually(t, "the OpenAPI document of "+groupVersion, func(context.Context) (bool, error) {
		data, err := Kubectl(t, "", "get", "--raw", "/openapi/v3")
		if err == nil {
			err = json.Unmarshal([]byte(data), &index)
		}
		return index.Paths["apis/"+groupVersion].ServerRelativeURL != "", err
	})
	document := struct {
		Components struct{ Schemas map[string]OpenAPIModel }
	}{}
	data := MustKubectl(t, "", "get", "--raw", index.Paths["apis/"+groupVersion].ServerRelativeURL)
	if err := json.Unmarshal([]byte(data), &document); err != nil {
		t.Fatal(err)
	}
	return document.Components.Schemas
}

// FieldManager is the field manager of everything that the tests apply: fields that it omits from its next apply are removed.
const FieldManager = "attacker"

// DryRun returns the values of the option dryRun.
func DryRun(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// OnManagedCluster returns a request for a ManagedCluster or a subresource of it.
func OnManagedCluster(verb *rest.Request, name, subresource string) *rest.Request {
	r := verb.Resource("managedclusters").Name(name)
	if subresource != "" {
		r = r.SubResource(subresource)
	}
	return r
}

// PatchWith returns a way to patch a cluster into a different one.
func PatchWith(kind types.PatchType, body func(before, after *clusterv1.ManagedCluster) ([]byte, error)) func(context.Context, rest.Interface, string, bool, *clusterv1.ManagedCluster, *clusterv1.ManagedCluster) error {
	return func(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error {
		data, err := body(before, after)
		if err != nil {
			return err
		}
		opts := &metav1.PatchOptions{DryRun: DryRun(dryRun)}
		if kind == types.ApplyYAMLPatchType {
			opts.Force, opts.FieldManager = new(true), FieldManager
		}
		return OnManagedCluster(client.Patch(kind), before.Name, subresource).
			VersionedParams(opts, scheme.ParameterCodec).Body(data).Do(ctx).Error()
	}
}

// Applied returns the apply configuration of FieldManager for a cluster. It always includes hubAcceptsClient, as upstream's agents do.
func Applied(_, c *clusterv1.ManagedCluster) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": clusterv1.SchemeGroupVersion.String(), "kind": "ManagedCluster",
		"metadata": map[string]any{"name": c.Name, "labels": c.Labels},
		"spec":     map[string]any{"hubAcceptsClient": c.Spec.HubAcceptsClient},
	})
}
