// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// trustOf returns what a cluster needs to trust the OIDC provider of a request.
func trustOf(ar *v1alpha1.AccessRequest) v1alpha1.OIDCProviderConfig {
	provider := ar.Spec.OIDC.OIDCProviderConfig.DeepCopy().Default()
	provider.RoleBindings, provider.ExtraScopes = nil, nil
	provider.UsernamePrefix, provider.GroupsPrefix = new(provider.GetUsernamePrefix()), new(provider.GetGroupsPrefix())
	return *provider
}

// Origin returns the annotations of an object in a cluster: for which request it was created, and how the names in it are assigned.
func Origin(own hub.Identity, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) map[string]string {
	origin := own.Origin(ar, cluster)
	if ar.Spec.OIDC != nil {
		provider := trustOf(ar)
		origin[own.NamesAnnotation()] = names(&provider)
	}
	return origin
}

// names describes how a provider names its users. Different settings have different texts: providers are compared by them.
func names(p *v1alpha1.OIDCProviderConfig) string {
	return fmt.Sprintf("tokens of %s are trusted: their claim %s with the prefix %q names the user, %s with the prefix %q the groups",
		word(p.Issuer), word(*p.UsernameClaim), *p.UsernamePrefix, word(*p.GroupsClaim), *p.GroupsPrefix)
}

// word formats a text as one word. Most issuers and names of claims are unchanged.
func word(text string) string {
	if strings.ContainsAny(text, ` "`) {
		return strconv.Quote(text)
	}
	return text
}
