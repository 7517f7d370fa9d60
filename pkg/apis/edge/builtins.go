// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// readOnly are those of nodes, those that Open Horizon makes of devices, and those of services.
var readOnly = map[string]bool{
	PropertyArch: true, PropertyCPU: true, PropertyMemory: true,
	PropertyKubernetesVersion: true, PropertyKubernetesNamespace: true, PropertyKubernetesNamespaceScoped: true,
	"openhorizon.hardwareId": true, "openhorizon.operatingSystem": true, "openhorizon.containerized": true,
	"openhorizon.service.url": true, "openhorizon.service.name": true, "openhorizon.service.org": true,
	"openhorizon.service.version": true, "openhorizon.service.arch": true,
}

// ReadOnly says whether the hub alone makes a property of this name.
func ReadOnly(name string) bool { return readOnly[name] }

// DropReadOnly takes properties out of a policy that the hub alone makes. It returns where they were, for warnings.
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

// DropReadOnlyOfNode does it for all policies of a node: the one at the top and those that are laid over it.
func DropReadOnlyOfNode(spec *EdgeNodeSpec, path *field.Path) []string {
	dropped := DropReadOnly(&spec.Policy, path)
	dropped = append(dropped, DropReadOnly(spec.Deployment, path.Child("deployment"))...)
	return append(dropped, DropReadOnly(spec.Management, path.Child("management"))...)
}
