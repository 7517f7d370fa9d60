// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
	"github.com/clusterhub/clusterhub/pkg/namehash"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// promptlyGranted waits for a grant, and fails the test if a backoff may have delayed it.
func (s *scheduled) promptlyGranted(request *v1alpha1.ClusterRequest) {
	s.Helper()
	start := time.Now()
	s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
	if took := time.Since(start); took > promptly {
		s.Errorf("granted %s after it could be", took)
	}
}

// failures returns the number of retries of requests since this process started.
func (s *scheduled) failures() (sum float64) {
	s.Helper()
	for _, family := range harness.Must(metrics.Registry.Gather())(s.T) {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "controller_runtime_reconcile_errors_total" && metric.GetLabel()[0].GetValue() == "clusterscheduler" {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestAccessScheduler_UnavailableClusters(t *testing.T) {
	s := newScheduled(t, 1, `
scheduler:
  purposeMappings:
    exclusive: {template: {spec: {profile: PROFILE, tenancy: Exclusive}}}
    one: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    two: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    three: {template: {spec: {profile: PROFILE, tenancy: Shared}}}
    four: {tenancyCount: 1, template: {spec: {profile: PROFILE, tenancy: Shared}}}
`)
	s.alone("those of another kind", func(s *scheduled) {
		s.place("mine", "one", v1alpha1.TENANCY_EXCLUSIVE)
		s.place("another", "one", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) { c.Spec.Profile = newProfile(s.T) })
		s.has(s.grant("one", "one"), "one")
	})
	s.alone("one that somebody has, whichever of its holders is alive", func(s *scheduled) {
		const name = "wants"
		alive := s.ask("nothing", func(r *v1alpha1.ClusterRequest) { r.Labels = nil })
		gone := v1alpha1.RequestFinalizerOnClusterPrefix + "5f0a1c3e-0000-4000-8000-000000000000"
		cluster := "exclusive-" + namehash.NameHash(s.namespace, name)
		s.place(cluster, "exclusive", v1alpha1.TENANCY_EXCLUSIVE, func(c *v1alpha1.Cluster) {
			c.Finalizers = []string{gone, alive.FinalizerForCluster()}
		})
		request := s.ask("exclusive", func(r *v1alpha1.ClusterRequest) { r.Name = name })
		s.await(request, v1alpha1.REQUEST_PENDING, "ClusterConflict")
		if message := meta.FindStatusCondition(request.Status.Conditions, "Granted").Message; !strings.Contains(message, "randomize-cluster-name") {
			s.Errorf("the message is %q", message)
		}
		s.delete(alive)
		s.promptlyGranted(request)
		if c := s.has(request, cluster); c.GetTenancyCount() != 1 {
			s.Errorf("it is held by %q", c.Finalizers)
		}
	})
	s.alone("one that goes, until it is gone", func(s *scheduled) {
		old := s.place("two", "two", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) { c.Finalizers = []string{holder} })
		s.delete(old)
		before := s.failures()
		request := s.ask("two")
		s.await(request, v1alpha1.REQUEST_PENDING, "WaitingForClusterDeletion")
		if tries := s.failures() - before; tries > 0 {
			s.Errorf("it is tried again %v times, and waits for nothing", tries)
		}
		s.patch(old, `{"metadata":{"finalizers":null}}`)
		s.promptlyGranted(request)
	})
	s.alone("what it says itself stays", func(s *scheduled) {
		s.place("three", "other", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) {
			c.Spec.Kubernetes.Version, c.Labels = "1.30.0", map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "false"}
		})
		c := s.has(s.grant("three", "three"), "three")
		if c.Spec.Kubernetes.Version != "1.30.0" || !slices.Equal(c.Spec.Purposes, []string{"other", "three"}) || c.Labels[v1alpha1.DeleteWithoutRequestsLabel] != "false" {
			s.Errorf("%+v %v", c.Spec, c.Labels)
		}
		profile := newProfile(s.T)
		s.place("four-"+namehash.NameHash(s.namespace, "four"), "other", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) { c.Spec.Profile = profile })
		request := s.ask("four", func(r *v1alpha1.ClusterRequest) { r.Name = "four" })
		s.await(request, v1alpha1.REQUEST_PENDING, "ClusterConflict")
	})
}

// TestAccessScheduler_LateProfile verifies that a request that waits for a profile or for its version is granted a cluster immediately when these
// appear.
func TestAccessScheduler_LateProfile(t *testing.T) {
	name := harness.Unique("late")
	s := newScheduled(t, 1, `
scheduler:
  purposeMappings:
    late: {template: {spec: {profile: `+name+`, tenancy: Exclusive, kubernetes: {version: 1.33.3}}}}
`)
	before := s.failures()
	request := s.ask("late")
	s.await(request, v1alpha1.REQUEST_PENDING, "ClusterRejected")
	if message := request.Status.Conditions[0].Message; !strings.Contains(message, name) {
		t.Errorf("the message is %q", message)
	}
	harness.Eventually(t, "the next try is far away", func(context.Context) (bool, error) {
		return harness.Holds(s.failures() >= before+quickTries, "it is not")
	})
	profile := create(t, &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterProfileSpec{
		ProviderRef: v1alpha1.LocalObjectReference{Name: "kind"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "late"},
		SupportedVersions: []v1alpha1.SupportedK8sVersion{{Version: "1.30.0"}},
	}})
	harness.Eventually(t, "it waits for the version", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(request), request)
		return strings.Contains(request.Status.Conditions[0].Message, "1.33.3"), err
	})
	s.patch(profile, `{"spec":{"supportedVersions":[{"version":"1.33.3"}]}}`)
	s.promptlyGranted(request)
}

// TestAccessScheduler_VanishedRequests verifies that clusters of requests that are deleted without finalization are released.
func TestAccessScheduler_VanishedRequests(t *testing.T) {
	s := newScheduled(t, 2, "scheduler: {purposeMappings: {team: {tenancyCount: 2, template: {spec: {profile: PROFILE, tenancy: Shared}}}}}")
	vanish := func(request *v1alpha1.ClusterRequest) {
		t.Helper()
		// A scheduler that observes the deletion would release it, which is not what this test covers.
		s.patch(request, `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`)
		s.delete(request)
		s.patch(request, `{"metadata":{"finalizers":null}}`)
		s.awaitGone(request)
	}
	one, two := s.grant("team", "one"), s.grant("team", "two")
	cluster := s.clusterOf(one)
	vanish(one)
	harness.Eventually(t, "the cluster is taken from it", func(context.Context) (bool, error) {
		cluster = s.clusterOf(two)
		return slices.Equal(cluster.Finalizers, []string{two.FinalizerForCluster()}), nil
	})
	three := s.grant("team", "three")
	s.has(three, cluster.Name)
	vanish(two)
	vanish(three)
	s.awaitGone(cluster)

	// Claims of requests that were deleted while no scheduler ran, or that never existed, are found, too.
	old := s.place("old", "team", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) {
		c.Labels = map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "true"}
		c.Finalizers = []string{v1alpha1.RequestFinalizerOnClusterPrefix + "5f0a1c3e-0000-4000-8000-000000000001"}
	})
	s.awaitGone(old)
	// The finalizer of an existing request is retained.
	kept := s.place("kept", "team", v1alpha1.TENANCY_SHARED, func(c *v1alpha1.Cluster) {
		c.Finalizers = []string{v1alpha1.RequestFinalizerOnClusterPrefix + "5f0a1c3e-0000-4000-8000-000000000002", s.holder()}
	})
	harness.Eventually(t, "nobody is taken from it", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(kept), kept)
		return len(kept.Finalizers) == 1, err
	})
}

// TestAccessScheduler_PolicyCannotBeBypassed verifies that the policy sees only data that the requester cannot forge, and that its denials are
// permanent.
func TestAccessScheduler_PolicyCannotBeBypassed(t *testing.T) {
	const configuration = `
scheduler:
  purposeMappings:
    mine: {template: {spec: {profile: PROFILE, tenancy: Exclusive}}}
  policy:
    clusterRequests:
    - {name: words, expression: "has(request.metadata.labels) || has(request.metadata.annotations) || has(request.metadata.finalizers)"}
    - {name: places, expression: "namespaceObject.metadata.labels[?'trusted'].orValue('') == 'true'"}
`
	s := newScheduled(t, 1, configuration)
	const approved = "approver.example.com/approved"
	liar := s.ask("mine", func(r *v1alpha1.ClusterRequest) {
		r.Labels["team"], r.Annotations = "admins", map[string]string{approved: "true"}
		r.Finalizers = []string{holder}
	})
	s.await(liar, v1alpha1.REQUEST_DENIED, "DeniedByPolicy")
	s.patch(liar, `{"metadata":{"labels":{"team":"kings"},"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if _, err := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Patch(t.Context(), namespace.Name, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"trusted":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.grant("mine", "honest")
	harness.Eventually(t, "it was looked at again", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(liar), liar)
		return liar.Annotations[v1alpha1.OperationAnnotation] == "", err
	})
	s.await(liar, v1alpha1.REQUEST_DENIED, "DeniedByPolicy")
	if condition := meta.FindStatusCondition(liar.Status.Conditions, clusterscheduler.ConditionGranted); liar.Status.Cluster != nil || !strings.Contains(condition.Message, s.namespace) {
		t.Errorf("%+v", liar.Status)
	}
}
