// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// readOnly contains the built-in properties of nodes, those of devices in Open Horizon, and those of services.
var readOnly = map[string]bool{
	PropertyArch: true, PropertyCPU: true, PropertyMemory: true,
	PropertyKubernetesVersion: true, PropertyKubernetesNamespace: true, PropertyKubernetesNamespaceScoped: true,
	"openhorizon.hardwareId": true, "openhorizon.operatingSystem": true, "openhorizon.containerized": true,
	"openhorizon.service.url": true, "openhorizon.service.name": true, "openhorizon.service.org": true,
	"openhorizon.service.version": true, "openhorizon.service.arch": true,
}

// ReadOnly reports whether a property of this name is built-in, so that users cannot set it.
func ReadOnly(name string) bool { return readOnly[name] }

// DropReadOnly removes the built-in properties from a policy. It returns their paths and names for warnings.
func DropReadOnly(policy *Policy, path *field.Path) []string {
	if policy == nil {
		return nil
	}
	var dropped []string
	for i := range policy.Properties {
		if name := policy.Properties[i].Name; ReadOnly(name) {
			dropped = append(dropped, path.Child("properties").Index(i).String()+": "+name)
		}
	}
	if len(dropped) > 0 {
		policy.Properties = slices.DeleteFunc(policy.Properties, func(p Property) bool { return ReadOnly(p.Name) })
	}
	return dropped
}

// DropReadOnlyOfNode removes the built-in properties from all policies of a node: the policy at the top level and its overrides.
func DropReadOnlyOfNode(spec *EdgeNodeSpec, path *field.Path) []string {
	dropped := DropReadOnly(&spec.Policy, path)
	dropped = append(dropped, DropReadOnly(spec.Deployment, path.Child("deployment"))...)
	return append(dropped, DropReadOnly(spec.Management, path.Child("management"))...)
}
