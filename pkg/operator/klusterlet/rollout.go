// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// annotationPods has the hash of what was applied of the pods of a Deployment, without their images.
const annotationPods = "operator.clusterhub.dev/pods-sha256"

// withRollout returns a Deployment with the strategy by which its pods are replaced; have is the one that is there, or nil. If the image is all that
// changes, the old pod ends when the new one is ready, so that an image that does not start costs nothing. Both are agents of one hub then, with one
// identity, and write what one agent that was restarted would. With any other change the next pod may be of another hub, or register another way: the
// old one ends before. So it does with several hubs, of which the two could use different ones. While nothing changes, the strategy stays.
func withRollout(want, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
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

// hashOfPods returns a hash of the template of a Deployment without the images of its containers.
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

// imageOf returns the images of the containers of a Deployment, as one text.
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
