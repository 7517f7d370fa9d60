// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// some makes n entries that differ.
func some[T any](n int, entry func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

func number(i int) string { return fmt.Sprintf("a%d", i) }

func conditions(n int) []metav1.Condition {
	return some(n, func(i int) metav1.Condition { return condition(number(i)) })
}

func resources(n int) cluster.ResourceList {
	list := cluster.ResourceList{}
	for i := range n {
		list[cluster.ResourceName(number(i))] = resource.MustParse("1")
	}
	return list
}

func config(url string, bundle int) func(int) cluster.ClientConfig {
	return func(int) cluster.ClientConfig { return cluster.ClientConfig{URL: url, CABundle: make([]byte, bundle)} }
}

func TestBounds_OfEveryFieldOfOthers(t *testing.T) {
	ofSpec := func(fill func(*cluster.ManagedClusterSpec, int)) func(now, before int) field.ErrorList {
		return func(now, before int) field.ErrorList {
			c, old := validCluster(), validCluster()
			fill(&c.Spec, now)
			if before < 0 {
				return boundstest.Created(t, scheme, c, ValidateManagedCluster)
			}
			fill(&old.Spec, before)
			return boundstest.Updated(t, scheme, c, old, ValidateManagedClusterUpdate)
		}
	}
	ofStatus := func(fill func(*cluster.ManagedClusterStatus, int)) func(now, before int) field.ErrorList {
		return func(now, before int) field.ErrorList {
			c, old := validCluster(), validCluster()
			fill(&c.Status, now)
			fill(&old.Status, max(before, 0))
			return boundstest.Updated(t, scheme, c, old, ValidateManagedClusterStatusUpdate)
		}
	}
	ofSelector := func(fill func(*metav1.LabelSelector, int)) func(now, before int) field.ErrorList {
		return func(now, before int) field.ErrorList {
			s, old := setWith(matching(&metav1.LabelSelector{})), setWith(matching(&metav1.LabelSelector{}))
			fill(s.Spec.ClusterSelector.LabelSelector, now)
			if before < 0 {
				return boundstest.Created(t, scheme, s, ValidateManagedClusterSet)
			}
			fill(old.Spec.ClusterSelector.LabelSelector, before)
			return boundstest.Updated(t, scheme, s, old, ValidateManagedClusterSetUpdate)
		}
	}
	// Bounds by hand let a list that is too long shrink.
	byHand := sets.New("CA bundle", "match labels", "match expressions", "values")
	for name, c := range map[string]struct {
		most int
		// change validates a change from before to now, or a new object if before is negative.
		change func(now, before int) field.ErrorList
	}{
		"client configs": {64, ofSpec(func(s *cluster.ManagedClusterSpec, n int) {
			s.ManagedClusterClientConfigs = some(n, config("https://a", 0))
		})},
		"url": {2048, ofSpec(func(s *cluster.ManagedClusterSpec, n int) {
			s.ManagedClusterClientConfigs = some(1, config("https://"+strings.Repeat("a", max(n-8, 1)), 0))
		})},
		"CA bundle": {maxCABundle, ofSpec(func(s *cluster.ManagedClusterSpec, n int) {
			s.ManagedClusterClientConfigs = some(1, config("https://a", n))
		})},
		"taints": {128, ofSpec(func(s *cluster.ManagedClusterSpec, n int) {
			s.Taints = some(n, func(i int) cluster.Taint { return cluster.Taint{Key: number(i), Effect: "NoSelect"} })
		})},
		"conditions": {128, ofStatus(func(s *cluster.ManagedClusterStatus, n int) { s.Conditions = conditions(n) })},
		"capacity":   {512, ofStatus(func(s *cluster.ManagedClusterStatus, n int) { s.Capacity = resources(n) })},
		"allocatable": {512, ofStatus(func(s *cluster.ManagedClusterStatus, n int) {
			s.Allocatable = resources(n)
		})},
		"version": {256, ofStatus(func(s *cluster.ManagedClusterStatus, n int) {
			s.Version.Kubernetes = strings.Repeat("1", n)
		})},
		"claims": {cluster.MaxClusterClaims, ofStatus(func(s *cluster.ManagedClusterStatus, n int) {
			s.ClusterClaims = some(n, func(i int) cluster.ManagedClusterClaim {
				return cluster.ManagedClusterClaim{Name: number(i), Value: "v"}
			})
		})},
		"namespaces": {1024, ofStatus(func(s *cluster.ManagedClusterStatus, n int) {
			s.ManagedNamespaces = some(n, func(i int) cluster.ClusterSetManagedNamespaceConfig {
				return cluster.ClusterSetManagedNamespaceConfig{Name: number(i), ClusterSet: "s"}
			})
		})},
		"conditions of a namespace": {128, ofStatus(func(s *cluster.ManagedClusterStatus, n int) {
			s.ManagedNamespaces = []cluster.ClusterSetManagedNamespaceConfig{{Name: "a", ClusterSet: "s", Conditions: conditions(n)}}
		})},
		"match labels": {maxRequirements, ofSelector(func(s *metav1.LabelSelector, n int) {
			s.MatchLabels = map[string]string{}
			for i := range n {
				s.MatchLabels[number(i)] = "b"
			}
		})},
		"match expressions": {maxRequirements, ofSelector(func(s *metav1.LabelSelector, n int) {
			s.MatchExpressions = some(n, func(i int) metav1.LabelSelectorRequirement {
				return metav1.LabelSelectorRequirement{Key: number(i), Operator: metav1.LabelSelectorOpExists}
			})
		})},
		"values": {maxValues, ofSelector(func(s *metav1.LabelSelector, n int) {
			s.MatchExpressions = requirement(metav1.LabelSelectorOpIn, some(max(n, 1), number)...).MatchExpressions
		})},
		"namespaces of a set": {256, func(now, before int) field.ErrorList {
			fill := func(n int) *cluster.ManagedClusterSet {
				s := setWith(matching(nil))
				s.Spec.ManagedNamespaces = some(max(n, 0), func(i int) cluster.ManagedNamespaceConfig { return cluster.ManagedNamespaceConfig{Name: number(i)} })
				return s
			}
			if before < 0 {
				return boundstest.Created(t, scheme, fill(now), ValidateManagedClusterSet)
			}
			return boundstest.Updated(t, scheme, fill(now), fill(before), ValidateManagedClusterSetUpdate)
		}},
		"conditions of a set": {128, func(now, before int) field.ErrorList {
			s, old := setWith(matching(nil)), setWith(matching(nil))
			s.Status.Conditions, old.Status.Conditions = conditions(now), conditions(max(before, 0))
			return boundstest.Updated(t, scheme, s, old, ValidateManagedClusterSetStatusUpdate)
		}},
		"conditions of a binding": {128, func(now, before int) field.ErrorList {
			b, old := binding("a", "a"), binding("a", "a")
			b.Status.Conditions, old.Status.Conditions = conditions(now), conditions(max(before, 0))
			return boundstest.Updated(t, scheme, b, old, ValidateManagedClusterSetBindingStatusUpdate)
		}},
	} {
		for _, try := range []struct {
			now, before int
			refused     bool
		}{
			{c.most, -1, false}, {c.most + 1, -1, true}, {c.most, c.most, false}, {c.most + 1, c.most, true},
			{c.most + 2, c.most + 2, false}, {c.most + 1, c.most + 2, !byHand.Has(name)}, {c.most + 3, c.most + 2, true},
		} {
			errs := c.change(try.now, try.before)
			for _, err := range errs {
				if err.Type != field.ErrorTypeTooMany && err.Type != field.ErrorTypeTooLong {
					t.Errorf("%s: %v", name, err)
				}
			}
			if (len(errs) > 0) != try.refused {
				t.Errorf("%s: %d after %d: %v", name, try.now, try.before, errs)
			}
		}
	}
	long := validCluster()
	long.Status.Capacity = cluster.ResourceList{cluster.ResourceName(strings.Repeat("x", maxResourceName+1)): {}}
	if errs := boundstest.Updated(t, scheme, long, validCluster(), ValidateManagedClusterStatusUpdate); len(errs) != 1 {
		t.Errorf("a huge name of a resource: %v", errs)
	}
	wantErrors(t, boundstest.Updated(t, scheme, long, long, ValidateManagedClusterStatusUpdate))
}
