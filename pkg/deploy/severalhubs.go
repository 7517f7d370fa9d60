// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// bootstrapFolder has a folder for each mounted Secret with a bootstrap kubeconfig. Upstream uses the same path.
const bootstrapFolder = "/spoke/bootstrap/"

// bootstrapFlag names the bootstrap kubeconfigs of several hubs.
const bootstrapFlag = "--bootstrap-kubeconfigs="

// HasSeveralHubs reports whether the agent of a Deployment has bootstrap kubeconfigs of several hubs.
func HasSeveralHubs(o *unstructured.Unstructured) bool {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		container, _ := one.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, bootstrapFlag) }) {
			return true
		}
	}
	return false
}

// mountBootstrapSecrets mounts Secrets with bootstrap kubeconfigs into the pods of a Deployment, and returns the flag that names the files. They are
// mounted, and not read by the agent: RBAC cannot grant a right to a Secret whose name is not known in advance, except with a right to all Secrets. A
// Secret may be created after the pod. Only its kubeconfig is mounted.
func mountBootstrapSecrets(o *unstructured.Unstructured, names []string) (flag string, err error) {
	path := []string{"spec", "template", "spec"}
	spec, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return "", err
	}
	containers, ok := spec["containers"].([]any)
	if !ok || len(containers) != 1 {
		return "", fmt.Errorf("the pods must have 1 container, but have %d", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return "", fmt.Errorf("the container is not an object")
	}
	volumes, _ := spec["volumes"].([]any)
	mounts, _ := container["volumeMounts"].([]any)
	var files []string
	for i, name := range names {
		volume := fmt.Sprintf("bootstrap-%d", i)
		volumes = append(volumes, map[string]any{"name": volume, "secret": map[string]any{
			"secretName": name, "optional": true, "defaultMode": int64(0o440),
			"items": []any{map[string]any{"key": registration.KeyKubeconfig, "path": registration.KeyKubeconfig}}}})
		mounts = append(mounts, map[string]any{"name": volume, "mountPath": bootstrapFolder + name, "readOnly": true})
		files = append(files, bootstrapFolder+name+"/"+registration.KeyKubeconfig)
	}
	spec["volumes"], container["volumeMounts"] = volumes, mounts
	return bootstrapFlag + strings.Join(files, ","), unstructured.SetNestedMap(o.Object, spec, path...)
}

// withoutBootstrapSecret removes the right to read the one Secret with a bootstrap kubeconfig from a Role.
func withoutBootstrapSecret(o *unstructured.Unstructured) error {
	rules, _, err := unstructured.NestedSlice(o.Object, "rules")
	if err != nil {
		return err
	}
	rules = slices.DeleteFunc(rules, func(rule any) bool {
		fields, ok := rule.(map[string]any)
		if !ok {
			return false
		}
		names, _, _ := unstructured.NestedStringSlice(fields, "resourceNames")
		return slices.Equal(names, []string{registration.BootstrapSecret})
	})
	return unstructured.SetNestedSlice(o.Object, rules, "rules")
}
