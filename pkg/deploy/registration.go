// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"strings"
)

// Manager is the Deployment of hub-controller-manager, and ManagerNamespace its namespace.
const (
	Manager          = "hub-controller-manager"
	ManagerNamespace = "clusterhub-system"
)

// RegistrationKustomization returns a kustomization, beside the folder artifacts of this repository, of a hub with these registration drivers. A hub
// on EKS has an ARN and assumes a role, and may have more flags.
func RegistrationKustomization(drivers []string, hubARN, roleARN string, more ...string) string {
	flags := []string{"--registration-drivers=" + strings.Join(drivers, ",")}
	if hubARN != "" {
		flags = append(flags, "--hub-cluster-arn="+hubARN)
	}
	flags = append(flags, more...)
	var b strings.Builder
	b.WriteString(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- artifacts/deploy/base
patches:
- target: {kind: Deployment, name: ` + Manager + `}
  patch: |-
`)
	for _, flag := range flags {
		fmt.Fprintf(&b, "    - {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}\n", flag)
	}
	if roleARN != "" {
		fmt.Fprintf(&b, "- target: {kind: ServiceAccount, name: %s}\n  patch: |-\n    - {op: add, path: /metadata/annotations, value: {eks.amazonaws.com/role-arn: %q}}\n",
			Manager, roleARN)
	}
	return b.String()
}
