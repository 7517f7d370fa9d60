// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func fuzzedIssuer(issuer, userClaim, userPrefix, groupsClaim, groupsPrefix string) *v1alpha1.OIDCProviderConfig {
	return &v1alpha1.OIDCProviderConfig{
		Issuer: issuer, UsernameClaim: &userClaim, UsernamePrefix: &userPrefix, GroupsClaim: &groupsClaim, GroupsPrefix: &groupsPrefix,
	}
}

// FuzzNames: the texts for two different issuers differ, since accepted and trusted issuers are identified by them.
func FuzzNames(f *testing.F) {
	f.Add("https://a", "sub", "a:", "groups", "a:", "https://a", "sub", "a:", "groups", "a:")
	f.Add("https://a", "sub", "", "groups", "", "https://a", "sub", `"`, "groups", "")
	f.Add("https://a", `sub`, ``, `x with the prefix "q:" names the user, groups`, `r:`,
		"https://a", `sub with the prefix "" names the user, x`, `q:`, `groups`, `r:`)
	f.Add("https://a", "x", "p:", "y", "q:", "https://a are trusted: their claim x", "x", "p:", "y", "q:")
	f.Add("https://a", "x", "\xff", "y", "", "https://a", "x", "\ufffd", "y", "")
	f.Fuzz(func(t *testing.T, issuer1, user1, prefix1, groups1, groupsPrefix1, issuer2, user2, prefix2, groups2, groupsPrefix2 string) {
		one := fuzzedIssuer(issuer1, user1, prefix1, groups1, groupsPrefix1)
		two := fuzzedIssuer(issuer2, user2, prefix2, groups2, groupsPrefix2)
		same := issuer1 == issuer2 && user1 == user2 && prefix1 == prefix2 && groups1 == groups2 && groupsPrefix1 == groupsPrefix2
		if (names(one) == names(two)) != same {
			t.Errorf("the same: %t, but in words\n%s\n%s", same, names(one), names(two))
		}
	})
}

// FuzzPrefixes: two issuers that a cluster trusts assign no name to two people, and no name that a user of the cluster has already.
func FuzzPrefixes(f *testing.F) {
	for _, prefixes := range [][2]string{
		{"a:", "b:"}, {"a:", "a:b:"}, {"a:b", "a:"}, {"", "a:"}, {"system:", "a:"}, {"s", "system"}, {"a/", "a#"}, {"::", ":"}, {"ä|", "a\xff@"},
	} {
		f.Add(prefixes[0], prefixes[1], "ann", "b:ann")
		f.Add(prefixes[1], prefixes[0], "system:masters", "")
	}
	f.Fuzz(func(t *testing.T, one, two, name1, name2 string) {
		for _, kind := range []string{rbacv1.UserKind, rbacv1.GroupKind} {
			a, b := fuzzedIssuer("https://a", "sub", "a:", "groups", "a:"), fuzzedIssuer("https://b", "sub", "b:", "groups", "b:")
			a.UsernamePrefix, b.UsernamePrefix = &one, &two
			if kind == rbacv1.GroupKind {
				a, b = fuzzedIssuer("https://a", "sub", "a:", "groups", one), fuzzedIssuer("https://b", "sub", "b:", "groups", two)
			}
			if one+name1 == two+name2 && collision(a, b) == nil {
				t.Errorf("%s: issuers with the prefixes %q and %q are both trusted, and both give %q", kind, one, two, one+name1)
			}
			if (collision(a, b) == nil) != (collision(b, a) == nil) {
				t.Errorf("%q and %q collide in one order", one, two)
			}
			given := rbacv1.Subject{Kind: kind, Name: one + name1}
			ofCluster := strings.HasPrefix(given.Name, "system:")
			if anyPrefixed([]rbacv1.Subject{given}, a) == ofCluster {
				t.Errorf("the prefix %q is one of %+v: %t", one, given, ofCluster)
			}
			if prefixProblem(one) == "" && (ofCluster || one == "") {
				t.Errorf("an issuer with the prefix %q gives %q", one, given.Name)
			}
		}
	})
}
