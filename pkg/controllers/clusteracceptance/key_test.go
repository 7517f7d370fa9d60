// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	names "github.com/clusterhub/clusterhub/pkg/registration"
)

// Whose certificate is approved, is decided by what the cluster said when it was accepted, and what was approved since.
func TestAccept_PinsTheKeyOfTheAgent(t *testing.T) {
	key := func(digit string) string { return strings.Repeat(digit, 64) }
	c := newCluster("c1")
	c.Annotations[names.AnnotationAgentKey], c.Annotations[names.AnnotationRequesters] = key("A"), "system:bootstrap:abcdef"
	f := newFixture(t, c)
	f.settle("c1")
	want := func(when, key, requesters string) {
		t.Helper()
		a := f.role("c1").Annotations
		if a[names.AnnotationKey] != key || a[names.AnnotationRequesters] != requesters {
			t.Errorf("%s: pinned are %q and %q, want %q and %q", when, a[names.AnnotationKey], a[names.AnnotationRequesters], key, requesters)
		}
	}
	want("accepted", key("a"), "system:bootstrap:abcdef")

	f.change("c1", func(c *clusterv1.ManagedCluster) {
		c.Annotations[names.AnnotationAgentKey], c.Annotations[names.AnnotationRequesters] = key("b"), "mallory"
	})
	f.settle("c1")
	want("the agent says otherwise", key("a"), "system:bootstrap:abcdef")

	// By pkg/controllers/clustercertificates.
	role := f.role("c1")
	role.Annotations[names.AnnotationKey], role.Annotations[names.AnnotationKeySince] = key("c"), "2030-01-01T00:00:00Z"
	if err := f.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	f.settle("c1")
	want("renewed", key("c"), "system:bootstrap:abcdef")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	want("denied", key("c"), "")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	f.settle("c1")
	want("accepted again", key("c"), "mallory")
	if f.role("c1").Annotations[names.AnnotationKeySince] != "2030-01-01T00:00:00Z" {
		t.Error("since when is forgotten")
	}

	// Another cluster of the name, whether the first one's end was seen or not.
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.UID = "another" })
	f.settle("c1")
	want("another cluster of the name", key("b"), "mallory")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	f.change("c1", func(c *clusterv1.ManagedCluster) {
		c.UID, c.Spec.HubAcceptsClient, c.Annotations[names.AnnotationAgentKey] = "third", true, "no key"
	})
	f.settle("c1")
	want("a third, with what is no key", names.UndecidedKey, "mallory")
	// What was not decided is decided anew.
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	want("the third is denied", "", "")
}

// A list that is too long must not end as none, with which all may ask.
func TestAccept_NotWithMoreRequestersThanAreKept(t *testing.T) {
	c := newCluster("c1")
	c.Annotations[names.AnnotationRequesters] = strings.Repeat("system:serviceaccount:some-namespace:some-account,", 30)
	f := newFixture(t, c)
	f.settle("c1")
	if got := f.accepted("c1"); !strings.HasPrefix(got, "False "+names.ReasonError) || !strings.Contains(got, "name fewer users") {
		t.Errorf("it is %q", got)
	}
}

// By an aggregation rule others would write the rules, and the policy on the hub lets no role pass that has one.
func TestAccept_TakesAForeignAggregationRuleAway(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	role := f.role("c1")
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	if err := f.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	f.settle("c1")
	if rule := f.role("c1").AggregationRule; rule != nil {
		t.Errorf("it stays: %+v", rule)
	}
}
