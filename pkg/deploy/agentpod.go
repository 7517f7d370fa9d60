// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/base64"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// PullSecretName is the name of the Secret that is made of credentials for images. Open Cluster Management calls it the same.
const PullSecretName = "open-cluster-management-image-pull-credentials"

// AgentPod is what the pod of an agent has otherwise than in the manifests. The zero value changes nothing.
type AgentPod struct {
	// PullSecrets are names of Secrets in the namespace of the agent by which its image is pulled.
	PullSecrets []string
	// Resources are those of its container. Nil is as in the manifests, and empty is none.
	Resources map[string]any
}

// References are names as a pod names objects of its namespace.
func References(names []string) []any {
	references := make([]any, len(names))
	for i, name := range names {
		references[i] = map[string]any{"name": name}
	}
	return references
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
