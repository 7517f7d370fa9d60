// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	accessFinalizer = "access.clusters.openmcp.cloud/requests"
	patchAccess     = "patch *v1alpha1.AccessRequest"
	patchStatus     = "patch *v1alpha1.AccessRequest/status"
	patchCluster    = "patch *v1alpha1.Cluster"
)

func TestReconcile_FindsProvider(t *testing.T) {
	prepared := map[string]string{"clusters.openmcp.cloud/provider": "asdf", "clusters.openmcp.cloud/profile": "default"}
	for name, test := range map[string]struct {
		hub    []client.Object
		access *v1alpha1.AccessRequest
		labels map[string]string
		ref    bool
		writes []string
	}{
		"by a Cluster": {
			hub: []client.Object{profile(), cluster()}, access: access("a", toCluster),
			labels: prepared, ref: true, writes: []string{patchCluster, patchStatus, patchAccess},
		},
		"by a ClusterRequest": {
			hub: []client.Object{profile(), cluster(), grant("Granted", "my-cluster")}, access: access("a", toRequest),
			labels: prepared, ref: true, writes: []string{patchStatus, patchAccess, patchCluster, patchStatus, patchAccess},
		},
		"the Cluster counts where both are given": {
			hub: []client.Object{profile(), cluster(), grant("Granted", "other")}, access: access("a", toCluster, toRequest),
			labels: prepared, ref: true, writes: []string{patchCluster, patchStatus, patchAccess},
		},
		"the provider is there already": {
			hub: []client.Object{profile(), cluster()}, access: access("a", toCluster, labelled("asdf", "")),
			labels: prepared, ref: true, writes: []string{patchCluster, patchStatus, patchAccess},
		},
		"the profile is there already": {
			hub: []client.Object{profile(), cluster()}, access: access("a", toCluster, labelled("", "default")),
			labels: prepared, ref: true, writes: []string{patchCluster, patchStatus, patchAccess},
		},
		"everything is there already": {
			hub: []client.Object{profile(), cluster()}, access: access("a", toCluster, labelled("who", "knows")),
			labels: map[string]string{"clusters.openmcp.cloud/provider": "who", "clusters.openmcp.cloud/profile": "knows"},
			ref:    true, writes: []string{patchCluster, patchStatus},
		},
		"both labels and a ClusterRequest": {
			hub:    []client.Object{profile(), cluster(), grant("Granted", "my-cluster")},
			access: access("a", toRequest, labelled("asdf", "default"), phase("Pending", 1)),
			labels: prepared, ref: true, writes: []string{patchStatus, patchAccess, patchCluster, patchStatus},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(test.hub, test.access)...)
			got, _ := f.reconcile(t, "a")
			if diff := cmp.Diff(test.labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if test.ref && (got.Spec.ClusterRef == nil || got.Spec.ClusterRef.NamespacedName() != (client.ObjectKey{Namespace: "foo", Name: "my-cluster"})) {
				t.Errorf("clusterRef %v", got.Spec.ClusterRef)
			}
			if diff := cmp.Diff(test.writes, f.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			wantPending(t, got, metav1.ConditionTrue, "Prepared", `the provider "`+got.Labels["clusters.openmcp.cloud/provider"]+`" is responsible`)
			c := &v1alpha1.Cluster{}
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(cluster()), c); err != nil || !slices.Contains(c.Finalizers, accessFinalizer) {
				t.Errorf("the Cluster has the finalizers %q, %v", c.Finalizers, err)
			}
			before := len(f.writes)
			f.reconcile(t, "a")
			if len(f.writes) != before {
				t.Errorf("it is written again: %q", f.writes[before:])
			}
		})
	}
}

func wantPending(t *testing.T, got *v1alpha1.AccessRequest, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	if got.Status.Phase != "Pending" || got.Status.ObservedGeneration != got.Generation {
		t.Errorf("phase %q of generation %d, which is %d", got.Status.Phase, got.Status.ObservedGeneration, got.Generation)
	}
	c := meta.FindStatusCondition(got.Status.Conditions, "Prepared")
	if c == nil || c.Status != status || c.Reason != reason || c.Message != message || c.ObservedGeneration != got.Generation {
		t.Errorf("condition %+v, want %s %s %q", c, status, reason, message)
	}
}

func TestReconcile_ReportsMissing(t *testing.T) {
	const key = "clusters.openmcp.cloud/"
	noCluster := `referenced Cluster "foo/my-cluster" not found`
	for name, test := range map[string]struct {
		hub             []client.Object
		access          *v1alpha1.AccessRequest
		reason, message string
	}{
		"neither reference": {access: access("a"), reason: "ConfigurationProblem",
			message: `invalid AccessRequest resource "bar/a": neither spec.clusterRef nor spec.requestRef is set: set one of them`},
		"no ClusterRequest": {access: access("a", toRequest), reason: "InvalidReference", message: `ClusterRequest "foo/my-cluster-request" not found`},
		"a ClusterRequest that is denied": {hub: []client.Object{grant("Denied", "")}, access: access("a", toRequest),
			reason: "InvalidReference", message: `ClusterRequest "foo/my-cluster-request" is not granted`},
		"a ClusterRequest that is new": {hub: []client.Object{grant("", "")}, access: access("a", toRequest),
			reason: "InvalidReference", message: `ClusterRequest "foo/my-cluster-request" is not granted`},
		"a ClusterRequest that is pending again": {hub: []client.Object{profile(), cluster(), grant("Pending", "my-cluster")}, access: access("a", toRequest),
			reason: "InvalidReference", message: `ClusterRequest "foo/my-cluster-request" is not granted`},
		"a grant of nothing": {hub: []client.Object{grant("Granted", "")}, access: access("a", toRequest),
			reason: "InternalError", message: `ClusterRequest "foo/my-cluster-request" is granted but does not reference a cluster`},
		"a grant of what is gone": {hub: []client.Object{grant("Granted", "my-cluster")}, access: access("a", toRequest),
			reason: "InvalidReference", message: noCluster},
		"no Cluster": {access: access("a", toCluster), reason: "InvalidReference", message: noCluster},
		"no Cluster, and all labels": {access: access("a", toCluster, labelled("asdf", "default")), reason: "InvalidReference",
			message: noCluster},
		"no profile": {hub: []client.Object{cluster()}, access: access("a", toCluster), reason: "InvalidReference",
			message: `ClusterProfile "default" of the Cluster "foo/my-cluster" not found`},
		"another provider": {hub: []client.Object{profile(), cluster()}, access: access("a", toCluster, labelled("wrong", "")),
			reason: "ConfigurationProblem", message: `the label ` + key + `provider is "wrong", and the Cluster "foo/my-cluster" has the provider "asdf": remove the label`},
		"another profile of a grant": {hub: []client.Object{profile(), cluster(), grant("Granted", "my-cluster")}, access: access("a", toRequest, labelled("", "wrong")),
			reason: "ConfigurationProblem", message: `the label ` + key + `profile is "wrong", and the Cluster "foo/my-cluster" has the profile "default": remove the label`},
		"a Cluster that goes": {hub: []client.Object{profile(), deleting(cluster(), accessFinalizer)}, access: access("a", toCluster),
			reason: "WaitingForAccessRequestDeletion", message: `the Cluster "foo/my-cluster" is being deleted, so there is no new access to it`},
		"a Cluster that goes, and its provider holds it": {hub: []client.Object{profile(), deleting(cluster(), "example.com/x")}, access: access("a", toCluster),
			reason: "WaitingForAccessRequestDeletion", message: `the Cluster "foo/my-cluster" is being deleted, so there is no new access to it`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(test.hub, test.access)...)
			got, _ := f.reconcile(t, "a")
			// No provider may consider a request prepared, not even if it has labels.
			if v1alpha1.IsClusterProviderResponsibleForAccessRequest(got, "") {
				t.Errorf("a provider is responsible: phase %s", got.Status.Phase)
			}
			if isLabelled(got) && got.Status.Phase == "" {
				got.Status.Phase = "Pending"
			}
			wantPending(t, got, metav1.ConditionFalse, test.reason, test.message)
			if diff := cmp.Diff(test.access.Labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.access.Spec, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			f.reconcile(t, "a")
			if !slices.Equal(f.writes, []string{patchStatus}) {
				t.Errorf("wrote %q", f.writes)
			}
		})
	}
}

func TestReconcile_IgnoresOthers(t *testing.T) {
	all := labelled("asdf", "default")
	for name, request := range map[string]*v1alpha1.AccessRequest{
		"granted":                      access("a", toCluster, all, phase("Granted", 1)),
		"granted, for longer":          access("a", toCluster, all, phase("Granted", 1), ttl(2*time.Hour)),
		"granted, to be looked at":     access("a", toCluster, all, phase("Granted", 1), ttl(2*time.Hour), operation("reconcile")),
		"the provider is at it":        access("a", toCluster, all, phase("Pending", 0)),
		"denied":                       access("a", toCluster, phase("Denied", 1)),
		"denied after a grant":         access("a", toCluster, all, phase("Denied", 1)),
		"to be ignored":                access("a", toCluster, operation("ignore")),
		"to be ignored, though over":   access("a", toCluster, operation("ignore"), ttl(time.Minute)),
		"to be ignored, though going":  access("a", toCluster, all, phase("Granted", 1), operation("ignore"), going),
		"handed over, and going":       access("a", toCluster, all, phase("Pending", 2), going),
		"over, and being deleted":      access("a", toCluster, all, phase("Pending", 2), going, ttl(time.Minute)),
		"of another landscape (label)": access("a", toCluster, func(r *v1alpha1.AccessRequest) { r.Labels = map[string]string{"landscape": "live"} }),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, profile(), cluster(), request)
			if request.Labels["landscape"] != "" {
				f.selector = labels.SelectorFromSet(labels.Set{"landscape": "dev"})
			}
			_, result := f.reconcile(t, "a")
			if len(f.writes) != 0 {
				t.Errorf("wrote %q", f.writes)
			}
			wantAfter := time.Duration(0)
			if request.Spec.TTL != nil && request.Spec.TTL.Duration > time.Hour {
				wantAfter = time.Hour + time.Second
			}
			if result.RequeueAfter != wantAfter {
				t.Errorf("comes back after %s, want %s", result.RequeueAfter, wantAfter)
			}
		})
	}
}

func TestReconcile_ResetsPhaseOnChange(t *testing.T) {
	all := labelled("asdf", "default")
	for name, test := range map[string]struct {
		hub    []client.Object
		access *v1alpha1.AccessRequest
	}{
		"another spec after the grant":     {[]client.Object{profile(), cluster()}, access("a", toCluster, all, phase("Granted", 1), generation(2))},
		"deleted":                          {[]client.Object{profile(), cluster()}, access("a", toCluster, all, phase("Granted", 1), going)},
		"deleted after the denial":         {[]client.Object{profile(), cluster()}, access("a", toCluster, all, phase("Denied", 1), going)},
		"deleted, the Cluster going":       {[]client.Object{profile(), deleting(cluster(), accessFinalizer)}, access("a", toCluster, all, phase("Granted", 1), going)},
		"deleted, the Cluster gone":        {nil, access("a", toCluster, all, phase("Granted", 1), going)},
		"over, and deleted":                {[]client.Object{profile(), cluster()}, access("a", toCluster, all, phase("Granted", 1), going, ttl(time.Minute))},
		"deleted before it was for anyone": {nil, access("a", toRequest, going)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(test.hub, test.access)...)
			got, _ := f.reconcile(t, "a")
			if got.Status.Phase != "Pending" || got.Status.ObservedGeneration != 2 {
				t.Errorf("phase %q, generation %d", got.Status.Phase, got.Status.ObservedGeneration)
			}
			if want := test.access.Labels["clusters.openmcp.cloud/provider"] != ""; v1alpha1.IsClusterProviderResponsibleForAccessRequest(got, "asdf") != want {
				t.Errorf("its provider is responsible: %t", !want)
			}
			if !slices.Contains(f.writes, patchStatus) || slices.Contains(f.writes, patchAccess) {
				t.Errorf("wrote %q", f.writes)
			}
		})
	}
}

// A denial may have no generation, and nothing that the requester does reverts it.
func TestReconcile_DenialIsFinal(t *testing.T) {
	for name, changes := range map[string][]change{
		"as it was":                         {phase("Denied", 1)},
		"without a generation":              {phase("Denied", 0)},
		"another spec":                      {phase("Denied", 1), generation(2)},
		"prepared before":                   {phase("Denied", 1), generation(2), labelled("asdf", "default")},
		"asked to be looked at again":       {phase("Denied", 1), operation("reconcile")},
		"another spec, and to be looked at": {phase("Denied", 1), generation(2), operation("reconcile")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, profile(), cluster(), access("a", append([]change{toCluster}, changes...)...))
			for range 2 {
				got, _ := f.reconcile(t, "a")
				if got.Status.Phase != "Denied" || got.Status.ObservedGeneration != got.Generation || len(got.Annotations) > 0 {
					t.Errorf("%+v", got)
				}
				if v1alpha1.IsClusterProviderResponsibleForAccessRequest(got, "") {
					t.Error("a provider is responsible")
				}
			}
			if len(f.writes) > 2 || slices.Contains(f.writes, patchCluster) {
				t.Errorf("wrote %q", f.writes)
			}
		})
	}
}

func TestReconcile_DeletesExpired(t *testing.T) {
	for name, test := range map[string]struct {
		change []change
		gone   bool
		after  time.Duration
	}{
		"no limit":                  {},
		"over":                      {change: []change{ttl(time.Hour)}, gone: true},
		"over, and granted":         {change: []change{ttl(time.Minute), labelled("asdf", "default"), phase("Granted", 1)}, gone: true},
		"over, and denied":          {change: []change{ttl(time.Minute), phase("Denied", 1)}, gone: true},
		"over, and nobody's fault":  {change: []change{ttl(time.Minute), func(r *v1alpha1.AccessRequest) { r.Spec.ClusterRef = nil }}, gone: true},
		"an hour left":              {change: []change{ttl(2 * time.Hour)}, after: time.Hour + time.Second},
		"an hour left, and granted": {change: []change{ttl(2 * time.Hour), labelled("asdf", "default"), phase("Granted", 1)}, after: time.Hour + time.Second},
		"an hour left, and denied":  {change: []change{ttl(2 * time.Hour), phase("Denied", 1)}, after: time.Hour + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, profile(), cluster(), access("a", append([]change{toCluster}, test.change...)...))
			got, result := f.reconcile(t, "a")
			if (got == nil) != test.gone || result.RequeueAfter != test.after {
				t.Errorf("gone: %t, comes back after %s", got == nil, result.RequeueAfter)
			}
		})
	}
}

// Users who may write the labels of a request must not be able to keep it forever.
func TestReconcile_DeletesDeselected(t *testing.T) {
	for prepared, gone := range map[bool]bool{true: true, false: false} {
		a := access("a", toCluster, ttl(time.Hour))
		if prepared {
			a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionTrue}}
		}
		f := newFixture(t, profile(), cluster(), a)
		f.selector = labels.SelectorFromSet(labels.Set{"landscape": "dev"})
		if got, _ := f.reconcile(t, "a"); (got == nil) != gone {
			t.Errorf("prepared: %t, gone: %t", prepared, got == nil)
		}
	}
}

func TestReconcile_RemovesOperationAnnotation(t *testing.T) {
	f := newFixture(t, profile(), cluster(), access("a", toCluster, operation("reconcile")))
	got, _ := f.reconcile(t, "a")
	if _, there := got.Annotations["openmcp.cloud/operation"]; there || got.Labels["clusters.openmcp.cloud/provider"] != "asdf" {
		t.Errorf("annotations %v, labels %v", got.Annotations, got.Labels)
	}
}

// TestReconcile_ResumesAfterCrashAtEachWrite ends the process after each write in turn, and refuses each in turn.
func TestReconcile_ResumesAfterCrashAtEachWrite(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "accessrequests"}, "a", errors.New("changed"))
	for _, err := range []error{errors.New("killed"), conflict} {
		for crash := range 5 {
			f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"), access("a", toRequest, phase("Pending", 1)))
			f.refuse = func(n int) error {
				if n == crash {
					return err
				}
				return nil
			}
			request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "bar", Name: "a"}}
			_, _ = f.Reconcile(t.Context(), request)
			if len(f.writes) != crash {
				t.Fatalf("%d writes before the crash at %d", len(f.writes), crash)
			}
			halfway := &v1alpha1.AccessRequest{}
			if err := f.Get(t.Context(), request.NamespacedName, halfway); err != nil {
				t.Fatal(err)
			}
			if f.hasProvider(halfway) {
				t.Errorf("a provider acts after %q", f.writes)
			}
			f.refuse = func(int) error { return nil }
			got, _ := f.reconcile(t, "a")
			wantPending(t, got, metav1.ConditionTrue, "Prepared", `the provider "asdf" is responsible`)
			if !f.hasProvider(got) {
				t.Errorf("nobody is responsible after the crash at %d: %+v", crash, got)
			}
		}
	}
}

func TestWatches_EnqueueWaiting(t *testing.T) {
	all := labelled("asdf", "default")
	f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"),
		access("by-cluster", toCluster), access("by-request", toRequest), access("by-nothing"),
		access("granted", toCluster, all, phase("Granted", 1)), access("granted-by-request", toCluster, toRequest, all, phase("Granted", 1)),
		access("changed", toCluster, all, phase("Granted", 1), generation(2)))
	names := func(requests []reconcile.Request) (names []string) {
		for _, r := range requests {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		return names
	}
	if got := names(f.byRequest(t.Context(), grant("", ""))); !slices.Equal(got, []string{"by-request", "granted-by-request"}) {
		t.Errorf("a ClusterRequest: %q", got)
	}
	want := []string{"by-cluster", "by-request", "changed"}
	if got := names(f.waitingForCluster(t.Context(), cluster())); !slices.Equal(got, want) {
		t.Errorf("a Cluster: %q", got)
	}
	if got := names(f.waitingForPolicy(t.Context(), nil)); !slices.Equal(got, []string{"by-cluster", "by-nothing", "by-request", "changed"}) {
		t.Errorf("a policy: %q", got)
	}
	if got := names(f.waitingForProfile(t.Context(), profile())); !slices.Equal(got, want) {
		t.Errorf("a profile: %q", got)
	}
}
