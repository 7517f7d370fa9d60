// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Which key gets a certificate is decided by the annotations at the time of the acceptance, and by approvals since then.
func TestAccept_PinsKeyOfAgent(t *testing.T) {
	key := func(digit string) string { return strings.Repeat(digit, 64) }
	c := newCluster("c1")
	c.Annotations[registration.AnnotationAgentKey], c.Annotations[registration.AnnotationRequesters] = key("A"), "system:bootstrap:abcdef"
	f := newFixture(t, c)
	f.settle("c1")
	want := func(when, key, requesters string) {
		t.Helper()
		if got := f.record("c1"); got.Key != key || got.Requesters != requesters {
			t.Errorf("%s: pinned are %q and %q, want %q and %q", when, got.Key, got.Requesters, key, requesters)
		}
	}
	want("accepted", key("a"), "system:bootstrap:abcdef")

	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Annotations[registration.AnnotationRequesters] = "mallory" })
	f.settle("c1")
	want("it says otherwise", key("a"), "system:bootstrap:abcdef")

	f.remember("c1", func(kept *record.Record) { kept.Key, kept.KeySince = key("c"), "2030-01-01T00:00:00Z" })
	f.settle("c1")
	want("renewed", key("c"), "system:bootstrap:abcdef")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	want("denied", key("c"), "")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	f.settle("c1")
	want("accepted again", key("c"), "mallory")
	if f.record("c1").KeySince != "2030-01-01T00:00:00Z" {
		t.Error("since when is forgotten")
	}

	// A new cluster of the name, whether the end of the first one was seen or not.
	f.change("c1", func(c *clusterv1.ManagedCluster) {
		c.UID, c.Annotations[registration.AnnotationAgentKey] = "another", key("b")
	})
	f.settle("c1")
	want("another cluster of the name", key("b"), "mallory")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	f.change("c1", func(c *clusterv1.ManagedCluster) {
		c.UID, c.Spec.HubAcceptsClient, c.Annotations[registration.AnnotationAgentKey] = "third", true, "no key"
	})
	f.settle("c1")
	want("a third, with what is no key", registration.UndecidedKey, "mallory")
	// Without a decision, the next acceptance decides again.
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.settle("c1")
	want("the third is denied", "", "")
}

// The key of a denied cluster stays for its agent. Accepting the cluster again with a different key accepts that key.
func TestAccept_OtherKeyReplacesKey(t *testing.T) {
	key := func(digit string) string { return strings.Repeat(digit, 64) }
	for name, test := range map[string]struct{ made, again, want string }{
		"another key":              {key("a"), key("b"), key("b")},
		"none before":              {"", key("b"), key("b")},
		"the same":                 {key("a"), key("a"), key("c")},
		"none, as before":          {"", "", key("c")},
		"the same, spelled anew":   {key("a"), key("A"), key("c")},
		"what is no key":           {key("a"), "no key", registration.UndecidedKey},
		"no key, where one was":    {key("a"), "", ""},
		"the one it had by then":   {key("a"), key("c"), key("c")},
		"by what kept no such key": {"old", key("b"), key("c")},
	} {
		t.Run(name, func(t *testing.T) {
			named := func(key string) func(*clusterv1.ManagedCluster) {
				return func(c *clusterv1.ManagedCluster) {
					delete(c.Annotations, registration.AnnotationAgentKey)
					if key != "" {
						c.Annotations[registration.AnnotationAgentKey] = key
					}
				}
			}
			c := newCluster("c1")
			named(test.made)(c)
			f := newFixture(t, c)
			f.settle("c1")
			f.remember("c1", func(kept *record.Record) {
				kept.Key, kept.KeySince = key("c"), "2029-01-01T00:00:00Z"
				if test.made == "old" {
					kept.KeyNamed = ""
				}
			})
			f.change("c1", deny)
			f.settle("c1")
			f.change("c1", named(test.again))
			f.change("c1", accept)
			f.settle("c1")
			got := f.record("c1")
			if got.Key != test.want {
				t.Errorf("pinned is %q, want %q", got.Key, test.want)
			}
			// Earlier approvals are for the key that the cluster had.
			kept := got.KeySince == "2029-01-01T00:00:00Z"
			if kept != (got.Key == key("c") && test.again != key("c")) || got.KeySince == "" {
				t.Errorf("since %q", got.KeySince)
			}
		})
	}
}

// A list that is too long must not end as an empty one, with which all users may ask.
func TestAccept_TooManyRequesters(t *testing.T) {
	c := newCluster("c1")
	c.Annotations[registration.AnnotationRequesters] = strings.Repeat("system:serviceaccount:some-namespace:some-account,", 30)
	f := newFixture(t, c)
	f.settle("c1")
	if got := f.accepted("c1"); !strings.HasPrefix(got, "False "+registration.ReasonError) || !strings.Contains(got, "name fewer users") {
		t.Errorf("it is %q", got)
	}
}

// By an aggregation rule others would write the rules, and the policy on the hub admits no role that has one.
func TestAccept_RemovesAggregationRule(t *testing.T) {
	f := newFixture(t, newCluster("c1")).use(agentroles.PerCluster)
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
