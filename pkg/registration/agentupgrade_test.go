// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSplitImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for name, want := range map[string][2]string{
		"clusterhub/hub-agent:v1.2.3":                   {"clusterhub/hub-agent", "v1.2.3"},
		"clusterhub/hub-agent@" + digest:                {"clusterhub/hub-agent", digest},
		"clusterhub/hub-agent:v1@" + digest:             {"clusterhub/hub-agent", "v1"},
		"registry.example:5000/clusterhub/hub-agent:v1": {"registry.example:5000/clusterhub/hub-agent", "v1"},
		"registry.example:5000/clusterhub/hub-agent":    {"registry.example:5000/clusterhub/hub-agent", ""},
		"hub-agent:5000":                                {"hub-agent", "5000"},
		"hub-agent:v1":                                  {"hub-agent", "v1"},
		"hub-agent":                                     {"hub-agent", ""},
	} {
		if repository, version, err := SplitImage(name); err != nil || repository != want[0] || version != want[1] {
			t.Errorf("%s is %q and %q: %v", name, repository, version, err)
		}
	}
	for _, name := range []string{"", " ", "a b:v1", "a:v1\nb", "a//b:v1", "a:", "a@sha256:1", "a:v1:v2", "../a:v1", "a/b:v1/../c", "a:v1@" + digest + "0"} {
		if repository, version, err := SplitImage(name); err == nil {
			t.Errorf("%q is %q and %q", name, repository, version)
		}
	}
}

// TestAttack_OnlyAgentImageMayChange verifies that works can set only the image: with any other field of the pod, or an image of another
// repository, a user who may write works would get the identity of the cluster.
func TestAttack_OnlyAgentImageMayChange(t *testing.T) {
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: hub-agent%META%}, spec: {%SPEC%template: {%TEMPLATE%spec: {%POD%
		containers: [{name: hub-agent, image: %IMAGE%%CONTAINER%}%MORE%]}}}%OBJECT%}`
	check := func(image string, fields map[string]string) error {
		t.Helper()
		text := strings.ReplaceAll(manifest, "%IMAGE%", image)
		for _, place := range []string{"META", "SPEC", "TEMPLATE", "POD", "CONTAINER", "MORE", "OBJECT"} {
			text = strings.ReplaceAll(text, "%"+place+"%", fields[place])
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(text, err)
		}
		return CheckAgentImage(object, "clusterhub/hub-agent")
	}
	for _, image := range []string{"clusterhub/hub-agent:v2", `"clusterhub/hub-agent@sha256:` + strings.Repeat("0", 64) + `"`} {
		if err := check(image, nil); err != nil {
			t.Errorf("%s is refused: %v", image, err)
		}
	}
	if err := check("clusterhub/hub-agent:v2", map[string]string{"META": ", creationTimestamp: null"}); err != nil {
		t.Errorf("what a Go program has written is refused: %v", err)
	}
	for _, image := range []string{"evil/hub-agent:v2", "clusterhub/hub-agent", "clusterhub/hub-agent-evil:v2", "evil.example/clusterhub/hub-agent:v2",
		"clusterhub/hub-agent/evil:v2", `""`, "null", "1", `"clusterhub/hub-agent:v2 "`, `"CLUSTERHUB/hub-agent:v2"`, "clusterhub/hub-agent:5000/x:v2"} {
		if err := check(image, nil); err == nil {
			t.Errorf("the image %s is let through", image)
		}
	}
	for name, fields := range map[string]map[string]string{
		"arguments":           {"CONTAINER": ", args: [--hub-token=x]"},
		"a command":           {"CONTAINER": ", command: [sh]"},
		"a mount":             {"CONTAINER": ", volumeMounts: []"},
		"another container":   {"MORE": ", {name: other, image: clusterhub/hub-agent:v2}"},
		"an init container":   {"POD": "initContainers: [], "},
		"an account":          {"POD": "serviceAccountName: other, "},
		"the node's network":  {"POD": "hostNetwork: true, "},
		"labels of pods":      {"TEMPLATE": "metadata: {labels: {a: b}}, "},
		"replicas":            {"SPEC": "replicas: 0, "},
		"a strategy":          {"SPEC": "strategy: {type: Recreate}, "},
		"a label":             {"META": ", labels: {a: b}"},
		"an annotation":       {"META": ", annotations: {a: b}"},
		"an owner":            {"META": ", ownerReferences: []"},
		"a finalizer":         {"META": ", finalizers: [x/y]"},
		"its end":             {"META": ", deletionTimestamp: '2026-01-01T00:00:00Z'"},
		"a status":            {"OBJECT": ", status: {}"},
		"a time of its own":   {"META": ", creationTimestamp: '2026-01-01T00:00:00Z'"},
		"a list that is none": {"MORE": ", null"},
	} {
		if err := check("clusterhub/hub-agent:v2", fields); err == nil {
			t.Errorf("%s can be set", name)
		}
	}
}
