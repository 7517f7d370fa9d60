// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

func fuzzedIssuer(issuer, userClaim, userPrefix, groupsClaim, groupsPrefix string) *v1alpha1.OIDCProviderConfig {
	return &v1alpha1.OIDCProviderConfig{
		Issuer: issuer, UsernameClaim: &userClaim, UsernamePrefix: &userPrefix, GroupsClaim: &groupsClaim, GroupsPrefix: &groupsPrefix,
	}
}

// FuzzNames: no two issuers are told of in the same words. What is found fit and trusted is remembered by them.
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

// FuzzPrefixes: two issuers that a cluster trusts give no name to two people, and none that the cluster knows as somebody else's.
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

// FuzzRequestOf: what is made in a cluster is known again as that of its request, in its Cluster, and of no other.
func FuzzRequestOf(f *testing.F) {
	f.Add("teams", "a", "1", "c1", "teams", "b")
	f.Add("a", "b/c", "1", "c1", "a", "b")
	f.Add("", "a", "1", "c1", "a", "")
	f.Add("teams", strings.Repeat("a", 200), "1", "c1", "teams", strings.Repeat("a", 200)+"b")
	f.Fuzz(func(t *testing.T, namespace, name, uid, cluster, otherNamespace, otherName string) {
		own := hub.Identity{Name: "p", Environment: "e"}
		made := func(namespace, name string) *v1alpha1.AccessRequest {
			return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
		}
		ar, of := made(namespace, name), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(cluster)}}
		object := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Annotations: own.Origin(ar, of)}}
		valid := func(namespace, name string) bool {
			return len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) == 0
		}
		found := own.RequestOf(object, of)
		if found != nil && (found.Namespace+"/"+found.Name != namespace+"/"+name || string(found.UID) != uid) {
			t.Errorf("%s/%s became %s/%s", namespace, name, found.Namespace, found.Name)
		}
		if valid(namespace, name) && uid != "" && (found == nil || found.Namespace != namespace || found.Name != name) {
			t.Errorf("%s/%s became %v", namespace, name, found)
		}
		elsewhere := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(cluster + "x")}}
		if found := own.RequestOf(object, elsewhere); found != nil {
			t.Errorf("in another Cluster it is that of %s/%s", found.Namespace, found.Name)
		}
		if !valid(namespace, name) || !valid(otherNamespace, otherName) {
			return
		}
		other := made(otherNamespace, otherName)
		same := namespace == otherNamespace && name == otherName
		if (own.Hash(ar) == own.Hash(other)) != same {
			t.Errorf("%s/%s and %s/%s have the hash %s", namespace, name, otherNamespace, otherName, own.Hash(ar))
		}
		labels, others := own.AccessLabels(ar), own.AccessLabels(other)
		for key, value := range labels {
			if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
				t.Errorf("%s=%s is no label", key, value)
			}
		}
		if equal := labels[own.NameLabel()] == others[own.NameLabel()]; equal != (name == otherName) {
			t.Errorf("%s and %s are labelled %s", name, otherName, labels[own.NameLabel()])
		}
		if problems := validation.IsDNS1123Subdomain(hub.SecretName(name)); len(problems) > 0 || len(hub.SecretName(name)) > validation.DNS1123LabelMaxLength {
			t.Errorf("%q is no name of a Secret: %v", hub.SecretName(name), problems)
		}
	})
}
