// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// annotationPods is the annotation with the hash of the applied pod template of a Deployment, without images.
const annotationPods = "operator.clusterhub.dev/pods-sha256"

// WithRollout returns the desired Deployment with its update strategy set; have is the observed Deployment, or nil. The strategy is
//
//   - RollingUpdate if only the image changes. The old pod ends when the new one is ready, so an image that does not start leaves the agent running. Both
//     pods belong to one hub, share one identity and write the same state.
//   - Recreate if anything else changes, since the new pod may belong to another hub or register in another way, and if the agent has several hubs, of
//     which two pods could use different ones.
//
// The observed strategy is retained while the pods do not change.
func WithRollout(want, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	hash, err := hashOfPods(want)
	if err != nil {
		return nil, err
	}
	changed := want.DeepCopy()
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationPods] = hash
	changed.SetAnnotations(annotations)
	if have == nil || have.GetAnnotations()[annotationPods] != hash || deploy.HasSeveralHubs(want) {
		return changed, nil // with the strategy Recreate of the manifest
	}
	strategy, _, err := unstructured.NestedString(have.Object, "spec", "strategy", "type")
	if err != nil {
		return nil, err
	}
	if rolling := deploy.RollingUpdate(); strategy == rolling["type"] || imageOf(have) != imageOf(want) {
		err = unstructured.SetNestedField(changed.Object, rolling, "spec", "strategy")
	}
	return changed, err
}

// hashOfPods returns the hash of the pod template of a Deployment, without the images of its containers.
func hashOfPods(o *unstructured.Unstructured) (string, error) {
	template, _, err := unstructured.NestedMap(o.Object, "spec", "template") // a copy
	if err != nil {
		return "", err
	}
	for _, container := range containersOf(template, "spec", "containers") {
		delete(container, "image")
	}
	data, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// imageOf returns the images of the containers of a Deployment, one per line.
func imageOf(o *unstructured.Unstructured) (images string) {
	for _, container := range containersOf(o.Object, "spec", "template", "spec", "containers") {
		image, _ := container["image"].(string)
		images += image + "\n"
	}
	return images
}

func containersOf(fields map[string]any, path ...string) (all []map[string]any) {
	value, _, _ := unstructured.NestedFieldNoCopy(fields, path...)
	list, _ := value.([]any)
	for _, one := range list {
		if container, ok := one.(map[string]any); ok {
			all = append(all, container)
		}
	}
	return all
}
