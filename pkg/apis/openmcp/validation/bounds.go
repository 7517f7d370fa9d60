// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// Bounds that the markers of the API types cannot declare. docs/operating.md has the table of all bounds.
const (
	maxProviderStatus = 128 << 10
	maxRuleEntries    = 256
)

// longestEntries returns the length of the longest list in the rules of a request.
func longestEntries(spec *openmcp.AccessRequestSpec) int {
	longest := 0
	measure := func(permissions []openmcp.PermissionsRequest) {
		for _, p := range permissions {
			for i := range p.Rules {
				for _, list := range entriesOf(&p.Rules[i]) {
					longest = max(longest, len(list))
				}
			}
		}
	}
	if spec.Token != nil {
		measure(spec.Token.Permissions)
	}
	if spec.OIDC != nil {
		measure(spec.OIDC.Roles)
	}
	return longest
}

func entriesOf(r *rbacv1.PolicyRule) map[string][]string {
	return map[string][]string{
		"verbs": r.Verbs, "apiGroups": r.APIGroups, "resources": r.Resources, "resourceNames": r.ResourceNames, "nonResourceURLs": r.NonResourceURLs,
	}
}
