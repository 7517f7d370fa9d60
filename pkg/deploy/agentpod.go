// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/base64"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// PullSecretName is the name of the Secret that is created from credentials for images. Open Cluster Management uses the same name.
const PullSecretName = "open-cluster-management-image-pull-credentials"

// AgentPod has the changes of an agent's pod compared with the manifests. The zero value changes nothing.
type AgentPod struct {
	// PullSecrets are names of Secrets in the namespace of the agent for pulling its image.
	PullSecrets []string
	// Resources are the resources of its container. Nil leaves those of the manifests, and empty sets none.
	Resources map[string]any
}

// References returns names as references of a pod to objects in its namespace.
func References(names []string) []any {
	references := make([]any, len(names))
	for i, name := range names {
		references[i] = map[string]any{"name": name}
	}
	return references
}

// ListFlag formats a list for a flag. Flags are parsed as CSV, so items with characters that are special in CSV are quoted.
func ListFlag(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		if strings.ContainsAny(item, ",\"\n\r") {
			item = "\"" + strings.ReplaceAll(item, "\"", "\"\"") + "\""
		}
		quoted[i] = item
	}
	return strings.Join(quoted, ",")
}

// Fill changes the pods of a Deployment.
func (p AgentPod) Fill(o *unstructured.Unstructured) error {
	pod, err := mapIn(o.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	if len(p.PullSecrets) > 0 {
		pod["imagePullSecrets"] = References(p.PullSecrets)
	}
	if p.Resources == nil {
		return nil
	}
	for _, container := range slices.Concat(containersOf(pod, "initContainers"), containersOf(pod, "containers")) {
		container["resources"] = runtime.DeepCopyJSON(p.Resources)
	}
	return nil
}

// PullSecret returns the Secret of PullSecretName with the content of a config.json of docker.
func PullSecret(namespace string, config []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeDockerConfigJson),
		"metadata": map[string]any{"namespace": namespace, "name": PullSecretName},
		"data":     map[string]any{corev1.DockerConfigJsonKey: base64.StdEncoding.EncodeToString(config)},
	}}
}
