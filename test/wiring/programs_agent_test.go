// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

func TestWiring_HubAgent(t *testing.T) {
	works := deploy.Works{Role: "admin"}
	var lines []string
	for _, variant := range []struct {
		name     string
		deployed interface {
			Objects() ([]*unstructured.Unstructured, error)
		}
	}{
		{"agent", deploy.Agent{}},
		{"agent of works", deploy.Agent{Works: works}},
		{"agent of an edge node", deploy.Agent{Works: works, Args: []string{deploy.EdgeFlag}}},
		{"agent of a namespace", deploy.Agent{Namespace: "team", Scoped: true, Args: []string{deploy.ClusterNameFlag + "c1"}}},
		{"klusterlet", deploy.Klusterlet{Name: "k", Namespace: "a", Works: works}},
		{"klusterlet, singleton", deploy.Klusterlet{Name: "k", Namespace: "a", Works: works, Singleton: true}},
		{"klusterlet, detached", deploy.Klusterlet{Name: "k", Namespace: "a", AgentNamespace: "m", Works: works, Detached: true}},
		{"klusterlet, singleton, detached", deploy.Klusterlet{Name: "k", Namespace: "a", AgentNamespace: "m", Works: works, Detached: true, Singleton: true}},
	} {
		objects, err := variant.deployed.Objects()
		if err != nil {
			t.Fatal(variant.name, err)
		}
		for _, o := range objects {
			if o.GetKind() == "Deployment" {
				lines = append(lines, fmt.Sprintf("%s: Deployment %s", variant.name, o.GetName()))
				lines = append(lines, assembledAgent(t, shipped(t, objects, o.GetName()))...)
			}
		}
	}
	compare(t, "hub-agent", lines)
}

// assembledAgent returns the tasks and the checks of an agent with these flags.
func assembledAgent(t *testing.T, args []string) (lines []string) {
	t.Helper()
	kubeconfig := writeKubeconfig(t, "https://127.0.0.1:1")
	args = append(slices.Clone(args), "--spoke-kubeconfig="+kubeconfig)
	if slices.Contains(args, "--detached") {
		args = append(args, "--management-kubeconfig="+kubeconfig)
	}
	o := agent.NewOptions()
	parse(t, o.Flags(), args...)
	if err := o.Validate(); err != nil {
		t.Fatal(args, err)
	}
	tasks, health, err := o.Assemble()
	if err != nil {
		t.Fatal(args, err)
	}
	for _, task := range tasks {
		lines = append(lines, fmt.Sprintf("  task %s: %s", task.Name, typeName(reflect.ValueOf(task.Run))))
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		w := httptest.NewRecorder()
		health.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		lines = append(lines, fmt.Sprintf("  %s before the first session: %d", path, w.Code))
	}
	return lines
}
