// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// grant creates a request for a cluster by its name, and waits until it is granted.
func (s *scheduled) grant(purpose, name string, adapt ...func(*v1alpha1.ClusterRequest)) *v1alpha1.ClusterRequest {
	s.Helper()
	request := s.ask(purpose, append(adapt, func(r *v1alpha1.ClusterRequest) { r.Name = name })...)
	s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
	return request
}

// holder returns the finalizer of a request that the scheduler does not handle.
func (s *scheduled) holder() string {
	s.Helper()
	request := s.ask("nothing", func(r *v1alpha1.ClusterRequest) { r.Labels = nil })
	return request.FinalizerForCluster()
}

// place creates a cluster as a different client than the scheduler.
func (s *scheduled) place(name, purpose string, tenancy v1alpha1.Tenancy, adapt ...func(*v1alpha1.Cluster)) *v1alpha1.Cluster {
	s.Helper()
	cluster := harness.OpenMCPCluster(s.namespace, s.profile)
	cluster.Name, cluster.Spec.Purposes, cluster.Spec.Tenancy = name, []string{purpose}, tenancy
	for _, change := range adapt {
		change(cluster)
	}
	if err := s.Create(s.Context(), cluster); err != nil {
		s.Fatal(err)
	}
	return cluster
}

func (s *scheduled) patch(object client.Object, patch string) {
	s.Helper()
	if err := s.Patch(s.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		s.Fatal(err)
	}
}

func (s *scheduled) delete(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		if err := s.Delete(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
}

// has checks that a request is granted a cluster of a name, and that the cluster has the finalizer of the request.
func (s *scheduled) has(request *v1alpha1.ClusterRequest, cluster string) *v1alpha1.Cluster {
	s.Helper()
	c := s.clusterOf(request)
	if c.Name != cluster || !slices.Contains(c.Finalizers, request.FinalizerForCluster()) {
		s.Errorf("%s has %s, held by %q; want %s", request.Name, c.Name, c.Finalizers, cluster)
	}
	if !slices.Contains(request.Finalizers, v1alpha1.ClusterRequestFinalizer) || request.Status.ObservedGeneration != 1 {
		s.Errorf("%s: %q, %+v", request.Name, request.Finalizers, request.Status)
	}
	return c
}

// alone runs a part of a test that fails independently.
func (s *scheduled) alone(name string, f func(*scheduled)) {
	s.Run(name, func(t *testing.T) {
		part := *s
		part.T = t
		f(&part)
	})
}

// TestAccessScheduler_AsOpenMCP runs openMCP's own cases, with their names. The hashes are of namespace and name, so the namespace must be foo.
func TestAccessScheduler_AsOpenMCP(t *testing.T) {
	s := newScheduledIn(t, "foo", 1, `
scheduler:
  purposeMappings:
    exclusive: {template: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {profile: PROFILE, tenancy: Exclusive}}}
    shared: {tenancyCount: 2, template: {metadata: {generateName: shared-twice-}, spec: {profile: PROFILE, tenancy: Shared, purposes: [more]}}}
    unlimited: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    kept: {template: {metadata: {labels: {clusters.openmcp.cloud/delete-without-requests: "false"}}, spec: {profile: PROFILE, tenancy: Shared}}}
    going: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    ending: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    selected: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, name: by-name}, spec: {profile: PROFILE, tenancy: Shared}}}
    elsewhere: {template: {metadata: {namespace: default, generateName: elsewhere-}, spec: {profile: PROFILE, tenancy: Exclusive}}}
`)
	s.alone("exclusive, without and beside another", func(s *scheduled) {
		first := s.has(s.grant("exclusive", "exclusive"), "exclusive-qilq5nsb")
		s.place("unused", "exclusive", v1alpha1.TENANCY_EXCLUSIVE)
		second := s.clusterOf(s.grant("exclusive", "exclusive2"))
		if second.Name == first.Name || second.Name == "unused" {
			s.Errorf("the second has %s", second.Name)
		}
		want := map[string]string{"a": "b", v1alpha1.DeleteWithoutRequestsLabel: "true"}
		if !maps.Equal(first.Labels, want) || !maps.Equal(first.Annotations, map[string]string{"c": "d"}) || !slices.Equal(first.Spec.Purposes, []string{"exclusive"}) {
			s.Errorf("%v %v %v", first.Labels, first.Annotations, first.Spec)
		}
	})
	s.alone("shared, up to two", func(s *scheduled) {
		s.has(s.grant("shared", "shared"), "shared-twice-urf5rng2")
		s.has(s.grant("shared", "shared2"), "shared-twice-urf5rng2")
		third := s.has(s.grant("shared", "shared3"), "shared-twice-vsa6ssty")
		if !slices.Equal(third.Spec.Purposes, []string{"more", "shared"}) {
			s.Errorf("%v", third.Spec.Purposes)
		}
	})
	s.alone("twenty on one", func(s *scheduled) {
		for i := range 20 {
			s.has(s.grant("unlimited", fmt.Sprintf("r%d", i)), "unlimited")
		}
	})
	s.alone("a selector that does not match", func(s *scheduled) {
		s.place("unlabelled", "selected", v1alpha1.TENANCY_SHARED)
		s.has(s.grant("selected", "selected"), "by-name")
	})
	s.alone("the namespace of the template", func(s *scheduled) {
		request := s.grant("elsewhere", "elsewhere")
		cluster := s.clusterOf(request)
		if cluster.Namespace != "default" {
			s.Errorf("%s", cluster.Namespace)
		}
		s.delete(request)
		s.awaitGone(cluster)
	})
	s.alone("deletion with and without the cluster", func(s *scheduled) {
		for purpose, stays := range map[string]bool{"kept": true, "going": false} {
			one, two := s.grant(purpose, purpose+"1"), s.grant(purpose, purpose+"2")
			s.delete(one)
			s.awaitGone(one)
			cluster := s.has(two, purpose)
			if cluster.DeletionTimestamp != nil || cluster.GetTenancyCount() != 1 {
				s.Errorf("%+v", cluster.ObjectMeta)
			}
			s.delete(two)
			s.awaitGone(two)
			if !stays {
				s.awaitGone(cluster)
			} else if cluster := s.clusterOf(two); cluster.DeletionTimestamp != nil || len(cluster.Finalizers) > 0 {
				s.Errorf("%+v", cluster.ObjectMeta)
			}
		}
	})
	s.alone("a cluster that is being deleted is not given", func(s *scheduled) {
		old := s.place("old", "going", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) { c.Finalizers = []string{holder} })
		s.delete(old)
		s.has(s.grant("going", "third"), "going")
		s.patch(old, `{"metadata":{"finalizers":null}}`)
	})
	s.alone("random names", func(s *scheduled) {
		request := s.grant("exclusive", "random", func(r *v1alpha1.ClusterRequest) { r.Labels[v1alpha1.RandomizeClusterNameLabel] = "true" })
		again := s.grant("exclusive", "hashed", func(r *v1alpha1.ClusterRequest) { r.Labels[v1alpha1.RandomizeClusterNameLabel] = "false" })
		if name := request.Status.Cluster.Name; len(name) != len("exclusive-12345") || !strings.HasPrefix(name, "exclusive-") {
			s.Errorf("a random name is %s", name)
		}
		if name := again.Status.Cluster.Name; len(name) != len("exclusive-12345678") {
			s.Errorf("a hashed name is %s", name)
		}
	})
	s.alone("what is lost comes again", func(s *scheduled) {
		request := s.grant("exclusive", "lost")
		name := request.Status.Cluster.Name
		cluster := s.has(request, name)
		s.patch(cluster, `{"metadata":{"finalizers":null}}`)
		s.patch(request, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
		harness.Eventually(s.T, "the finalizer is there again", func(context.Context) (bool, error) {
			return slices.Contains(s.clusterOf(request).Finalizers, request.FinalizerForCluster()), nil
		})
		cluster = s.clusterOf(request)
		s.delete(cluster) // the finalizer retains it, and it must not be recreated before it is gone
		s.patch(cluster, `{"metadata":{"finalizers":null}}`)
		harness.Eventually(s.T, "the cluster is there again", func(ctx context.Context) (bool, error) {
			there := &v1alpha1.Cluster{}
			err := s.Get(ctx, client.ObjectKeyFromObject(cluster), there)
			return err == nil && there.UID != cluster.UID, client.IgnoreNotFound(err)
		})
		s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
		s.has(request, name)
		if len(request.Annotations) > 0 {
			s.Errorf("what was asked for once is asked for still: %v", request.Annotations)
		}
	})
	s.alone("what two have lost comes again for both", func(s *scheduled) {
		one, two := s.grant("unlimited", "lost1"), s.grant("unlimited", "lost2")
		old := s.has(two, "unlimited")
		s.delete(old)
		s.patch(old, `{"metadata":{"finalizers":null}}`)
		harness.Eventually(s.T, "both have it again", func(ctx context.Context) (bool, error) {
			c := &v1alpha1.Cluster{}
			err := s.Get(ctx, client.ObjectKeyFromObject(old), c)
			return err == nil && c.UID != old.UID && c.GetRequestUIDs().HasAll(string(one.UID), string(two.UID)), client.IgnoreNotFound(err)
		})
	})
	s.alone("who waits for the end of the cluster", func(s *scheduled) {
		for name, test := range map[string]struct {
			purpose string
			wait    *bool
			waits   bool
		}{
			"exclusive-waits": {"exclusive", nil, true}, "exclusive-does-not": {"exclusive", new(false), false},
			"shared-does-not": {"ending", nil, false}, "shared-waits": {"ending", new(true), true},
		} {
			request := s.grant(test.purpose, name, func(r *v1alpha1.ClusterRequest) { r.Spec.WaitForClusterDeletion = test.wait })
			cluster := s.clusterOf(request)
			s.patch(cluster, `{"metadata":{"finalizers":["`+request.FinalizerForCluster()+`","`+holder+`"]}}`)
			s.delete(request)
			if test.waits {
				s.await(request, v1alpha1.REQUEST_PENDING, "WaitingForClusterDeletion")
			} else {
				s.awaitGone(request)
			}
			cluster = s.clusterOf(request)
			if cluster.DeletionTimestamp == nil || !slices.Equal(cluster.Finalizers, []string{holder}) {
				s.Errorf("%s: %+v", name, cluster.ObjectMeta)
			}
			s.patch(cluster, `{"metadata":{"finalizers":null}}`)
			s.awaitGone(request)
			s.awaitGone(cluster)
		}
	})
	s.alone("a status that was never written", func(s *scheduled) {
		request := s.ask("exclusive", func(r *v1alpha1.ClusterRequest) {
			r.Annotations = map[string]string{v1alpha1.OperationAnnotation: "ignore"}
		})
		s.place("given", "exclusive", v1alpha1.TENANCY_EXCLUSIVE, func(c *v1alpha1.Cluster) { c.Finalizers = []string{request.FinalizerForCluster()} })
		s.patch(request, `{"metadata":{"annotations":null}}`)
		s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
		s.has(request, "given")
	})
	s.alone("metadata for the cluster", func(s *scheduled) {
		const key = v1alpha1.MetadataAnnotationLabelPrefix + "team"
		tell := func(r *v1alpha1.ClusterRequest) {
			r.Labels[key], r.Annotations = "one", map[string]string{key: "one", "own": "x"}
		}
		mine, ours := s.grant("exclusive", "told", tell), s.grant("unlimited", "told-too", tell)
		if c := s.clusterOf(mine); c.Labels[key] != "one" || c.Annotations[key] != "one" || c.Annotations["own"] != "" {
			s.Errorf("%v %v", c.Labels, c.Annotations)
		}
		// The template has no labels and annotations, and the bare cluster can still get some.
		bare := s.grant("exclusive", "bare")
		if c := s.clusterOf(bare); c.Labels[key]+c.Annotations[key] != "" {
			s.Errorf("%v %v", c.Labels, c.Annotations)
		} else {
			s.patch(c, `{"metadata":{"labels":null,"annotations":null}}`)
		}
		for _, request := range []*v1alpha1.ClusterRequest{mine, ours, bare} {
			s.patch(request, `{"metadata":{"labels":{"`+key+`":"two"},"annotations":{"`+key+`":"two"}}}`)
		}
		for _, request := range []*v1alpha1.ClusterRequest{mine, bare} {
			harness.Eventually(s.T, request.Name+" tells its cluster", func(context.Context) (bool, error) {
				c := s.clusterOf(request)
				return c.Labels[key] == "two" && c.Annotations[key] == "two", nil
			})
		}
		if c := s.clusterOf(ours); c.Labels[key]+c.Annotations[key] != "" {
			s.Errorf("%v %v", c.Labels, c.Annotations)
		}
	})
}

func TestAccessScheduler_UsesTrustedNamespaces(t *testing.T) {
	s := newScheduled(t, 1, `
scheduler:
  scope: Cluster
  selectors: {clusters: {matchLabels: {global: "yes"}}}
  purposeMappings:
    any: {trustedNamespaces: ["*"], template: {metadata: {labels: {global: "yes"}}, spec: {profile: PROFILE, tenancy: Shared}}}
    some: {trustedNamespaces: ["*"], selector: {matchLabels: {local: "yes"}}, template: {metadata: {labels: {global: "yes", local: "yes"}}, spec: {profile: PROFILE, tenancy: Shared}}}
    none: {template: {metadata: {labels: {global: "yes"}}, spec: {profile: PROFILE, tenancy: Shared}}}
`)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("other")}}
	harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Create(t.Context(), other, metav1.CreateOptions{}))(t)
	labelled := func(purpose string, labels map[string]string) {
		c := harness.OpenMCPCluster(other.Name, s.profile)
		c.Name, c.Labels, c.Spec.Purposes = harness.Unique(purpose), labels, []string{purpose}
		create(t, c)
	}
	labelled("any", map[string]string{"global": "yes"})
	labelled("none", map[string]string{"global": "yes"})
	labelled("some", map[string]string{"global": "yes"})
	labelled("some", map[string]string{"local": "yes"})
	if c := s.clusterOf(s.grant("any", "any")); c.Namespace != other.Name {
		t.Errorf("it has %s/%s", c.Namespace, c.Name)
	}
	for _, purpose := range []string{"some", "none"} {
		if c := s.clusterOf(s.grant(purpose, purpose)); c.Namespace != s.namespace || c.Name != purpose {
			t.Errorf("%s: it has %s/%s", purpose, c.Namespace, c.Name)
		}
	}
}

func TestAccessScheduler_Strategies(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]func([]string) bool{
		"Balanced": func(names []string) bool { return slices.Equal(names, []string{"b", "b", "a", "b", "a", "b"}) },
		"Simple":   func(names []string) bool { return slices.Equal(names, []string{"a", "a", "a", "a", "a", "a"}) },
		"Random":   func(names []string) bool { return slices.Contains(names, "a") && slices.Contains(names, "b") },
	} {
		t.Run(strategy, func(t *testing.T) {
			s := newScheduled(t, 1, "scheduler: {strategy: "+strategy+", purposeMappings: {team: {template: {spec: {profile: PROFILE, tenancy: Shared}}}}}")
			s.place("a", "team", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) { c.Finalizers = []string{s.holder(), s.holder()} })
			s.place("b", "team", v1alpha1.TENANCY_SHARED)
			var names []string
			for i := range 6 {
				names = append(names, s.grant("team", fmt.Sprintf("r%d", i)).Status.Cluster.Name)
			}
			for i := 6; strategy == "Random" && i < 40 && !want(names); i++ {
				names = append(names, s.grant("team", fmt.Sprintf("r%d", i)).Status.Cluster.Name)
			}
			if !want(names) {
				t.Errorf("the requests have %q", names)
			}
		})
	}
}
