// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// AgentDeployment is the name of an agent's Deployment, and of the container in it.
	AgentDeployment = "hub-agent"
	// LabelAgentUpgrade with the value true is on replica sets of works that upgrade agents.
	LabelAgentUpgrade = "registration.clusterhub.dev/agent-upgrade"
	// KlusterletAgentPrefix is the prefix of the IDs of agents that hub-operator deploys. The name of the Klusterlet follows.
	KlusterletAgentPrefix = "klusterlet-"
)

// image is a repository with an optional port, and a tag, a digest or both.
var image = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?(?:/[a-z0-9][a-z0-9._-]*)*)` +
	`(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`)

// SplitImage returns the repository of an image, and its version: the tag, or the digest if it has none.
func SplitImage(name string) (repository, version string, err error) {
	parts := image.FindStringSubmatch(name)
	if parts == nil {
		return "", "", fmt.Errorf("%q is not the name of an image: REPOSITORY:TAG or REPOSITORY@sha256:DIGEST", name)
	}
	repository, version = parts[1], parts[2]
	if version == "" {
		version = parts[3]
	}
	// Without a slash, what looks like a port is a tag.
	if before, after, port := strings.Cut(repository, ":"); port && !strings.Contains(repository, "/") && version == parts[3] {
		repository = before
		if version == "" {
			version = after
		}
	}
	return repository, version, nil
}

// AgentImage returns the manifest by which a work sets the image of the agent in a namespace. No work may set anything else of an agent.
func AgentImage(namespace, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": namespace, "name": AgentDeployment},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": AgentDeployment, "image": image}}}}},
	}}
}

// ImageOfAgent returns the image in a manifest of AgentImage, or "" if it has no image.
func ImageOfAgent(manifest *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "template", "spec", "containers")
	if len(containers) != 1 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	name, _ := container["image"].(string)
	return name
}

// CheckAgentImage returns an error if a manifest is not one of AgentImage, with a tag or a digest of the repository.
func CheckAgentImage(manifest *unstructured.Unstructured, repository string) error {
	given := manifest.DeepCopy()
	if created, found, err := unstructured.NestedFieldNoCopy(given.Object, "metadata", "creationTimestamp"); found && err == nil && created == nil {
		unstructured.RemoveNestedField(given.Object, "metadata", "creationTimestamp") // Go programs write it
	}
	name := ImageOfAgent(given)
	if !reflect.DeepEqual(given.Object, AgentImage(given.GetNamespace(), name).Object) {
		return errors.New("a work may set the image of the agent, and nothing else of its Deployment: " +
			"kubectl hub agent upgrade --dry-run=client --output=yaml prints the manifest")
	}
	have, version, err := SplitImage(name)
	switch {
	case err != nil:
		return err
	case have != repository:
		return fmt.Errorf("the image %q is not one of the repository %s, which is the only one that the agent may be upgraded from", name, repository)
	case version == "":
		return fmt.Errorf("the image %q has neither a tag nor a digest", name)
	}
	return nil
}
