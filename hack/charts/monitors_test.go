// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMonitors_SelectMetricsPods: each PodMonitor selects the pods of one Deployment, by the port of its metrics, which asks for credentials; the token
// of its Secret is bound to a role that there is.
func TestMonitors_SelectMetricsPods(t *testing.T) {
	served := objects(t, Hub, HubNamespace, map[string]any{"clusterProvider": map[string]any{"enabled": true, "metrics": map[string]any{"enabled": true}}})
	served = append(served, objects(t, Agent, AgentNamespace, map[string]any{"metrics": map[string]any{"enabled": true}})...)
	for _, name := range []string{"deployment.yaml", "rbac.yaml"} {
		served = append(served, documents(t, filepath.Join(root, "artifacts", "deploy", "operator", name))...)
	}
	files := must(filepath.Glob(filepath.Join(root, "artifacts", "monitoring", "monitors*.yaml")))(t)
	monitors := 0
	for _, file := range files {
		all := documents(t, file)
		for _, o := range all {
			if o.GetKind() == "ClusterRoleBinding" {
				role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
				if !slices.ContainsFunc(slices.Concat(served, all), func(r *unstructured.Unstructured) bool { return r.GetKind() == "ClusterRole" && r.GetName() == role }) {
					t.Errorf("%s: there is no ClusterRole %s", filepath.Base(file), role)
				}
			}
			if o.GetKind() != "PodMonitor" {
				continue
			}
			monitors++
			endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "podMetricsEndpoints")
			if port := endpoints[0].(map[string]any)["port"]; port != "metrics" || len(endpoints) != 1 {
				t.Errorf("%s asks the port %v", o.GetName(), port)
			}
			labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
			namespaces, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "namespaceSelector", "matchNames")
			if len(namespaces) == 0 {
				namespaces = []string{o.GetNamespace()}
			}
			found := 0
			for _, d := range served {
				of, _, _ := unstructured.NestedString(d.Object, "spec", "template", "metadata", "labels", "app.kubernetes.io/name")
				if d.GetKind() == "Deployment" && of == labels["app.kubernetes.io/name"] && slices.Contains(namespaces, d.GetNamespace()) {
					found++
					servesMetrics(t, d)
				}
			}
			if found != 1 {
				t.Errorf("%s selects %d Deployments", o.GetName(), found)
			}
		}
	}
	if monitors != 4 {
		t.Errorf("there are %d PodMonitors, want those of 4 programs", monitors)
	}
}

// Of cluster-provider the chart has one where it serves metrics, and in its namespace.
func TestMonitors_OfProvider(t *testing.T) {
	of := func(values map[string]any) (namespaces []string) {
		for _, o := range objects(t, Hub, HubNamespace, merged(values, map[string]any{"metrics": map[string]any{"podMonitor": map[string]any{"enabled": true}}})) {
			if o.GetKind() == "PodMonitor" && o.GetName() == "cluster-provider-kubeconfig" {
				namespaces, _, _ = unstructured.NestedStringSlice(o.Object, "spec", "namespaceSelector", "matchNames")
			}
		}
		return namespaces
	}
	on := map[string]any{"enabled": true}
	if got := of(map[string]any{"clusterProvider": on}); got != nil {
		t.Errorf("without metrics there is one of %v", got)
	}
	if got := of(map[string]any{"clusterProvider": map[string]any{"enabled": true, "metrics": on, "namespace": "mine"}}); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("it is about %v", got)
	}
}

// servesMetrics wants a container with a port of the name metrics, which asks for credentials.
func servesMetrics(t *testing.T, d *unstructured.Unstructured) {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		ports, _, _ := unstructured.NestedSlice(c.(map[string]any), "ports")
		args, _, _ := unstructured.NestedStringSlice(c.(map[string]any), "args")
		for _, p := range ports {
			if port := p.(map[string]any); port["name"] == "metrics" && slices.Contains(args, "--metrics-secure") && slices.Contains(args, "--metrics-bind-address=:8443") &&
				fmt.Sprint(port["containerPort"]) == "8443" {
				return
			}
		}
	}
	t.Errorf("%s has no port of metrics that asks for credentials", d.GetName())
}

func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	return decoded(t, string(must(os.ReadFile(file))(t)))
}
