// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// older puts the hub into the state of an earlier version, which has accepted the cluster c1.
func older(f *fixture) {
	f.Helper()
	f.settle("c1")
	f.age("c1")
}

// age moves the record of a cluster to where earlier versions have it.
func (f *fixture) age(name string) {
	f.Helper()
	// They had a role for each cluster.
	if err := f.process.newPass(name).objects.ensureOwnRole(f.Context()); err != nil {
		f.Fatal(err)
	}
	kept, role := must(record.Get(f.Context(), f.client, name))(f.T), f.role(name)
	role.Annotations = map[string]string{}
	for key, value := range kept.Data {
		role.Annotations["registration.clusterhub.dev/"+key] = value
	}
	for _, err := range []error{f.client.Update(f.Context(), role), f.client.Delete(f.Context(), kept)} {
		if err != nil {
			f.Fatal(err)
		}
	}
}

// Before anything else is done with a cluster, the record of an older hub is copied to its new place, and nothing is deleted from the old place
// before. In the end the old place is empty.
func TestOlderHub_RecordsAreMigratedFirst(t *testing.T) {
	for name, do := range map[string]func(*fixture){
		"accepted": func(*fixture) {},
		"denied":   func(f *fixture) { f.change("c1", deny) },
		"deleted":  deleteCluster,
		"not there": func(f *fixture) {
			f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
			deleteCluster(f)
		},
	} {
		run := func(t *testing.T, mode string) {
			f := newFixture(t, newCluster("c1")).use(mode)
			f.settle("c1")
			f.remember("c1", func(kept *record.Record) { kept.Key, kept.KeySince, kept.Note = "aa", "2030-01-01T00:00:00Z", "a note" })
			before := f.record("c1")
			f.age("c1")
			do(f)
			f.effects, f.killAfter = nil, 1
			_, _ = f.reconcile("c1")
			f.restart()
			if diff := cmp.Diff(before, f.record("c1")); diff != "" || !record.HasLegacy(f.role("c1")) {
				t.Errorf("after %q, the old place has it: %t (-want +got):\n%s", f.effects, record.HasLegacy(f.role("c1")), diff)
			}
			if want := []string{"create ConfigMap c1"}; !slices.Equal(f.effects, want) || f.cloud.grants["c1"] != 1 || f.cloud.revokes != 0 {
				t.Errorf("effects %q, %d grants and %d revocations", f.effects, f.cloud.grants["c1"], f.cloud.revokes)
			}
			f.settle("c1")
			if slices.Contains(f.effects[1:], "create ConfigMap c1") || f.cloud.grants["c1"] != 1 {
				t.Errorf("effects %q, %d grants", f.effects, f.cloud.grants["c1"])
			}
			role := clusterRole("c1")
			err := f.client.Get(t.Context(), client.ObjectKeyFromObject(role), role)
			if err == nil && (mode == agentroles.Shared || record.HasLegacy(role)) || client.IgnoreNotFound(err) != nil {
				t.Errorf("the old place: %v, %v", role, err)
			}
		}
		for _, mode := range modes {
			t.Run(mode+", "+name, func(t *testing.T) { run(t, mode) })
		}
	}
}

// Agents keep the role that an older hub has created for their cluster until the shared role grants the same. A new cluster gets none.
func TestOlderHub_RolesRemainUntilSharedRoleIsInForce(t *testing.T) {
	for name, missing := range map[string]client.Object{"binding": sharedBinding(), "role": sharedRole()} {
		f := newFixture(t, newCluster("c1"), newCluster("c2"))
		older(f)
		if err := f.client.Delete(t.Context(), missing); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if result, err := f.reconcile("c1"); err != nil || result.RequeueAfter == 0 || result.RequeueAfter > sharedInterval {
				t.Errorf("without the %s: %v, %v", name, result, err)
			}
			f.restart()
		}
		binding := clusterRoleBinding("c1")
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil || len(f.role("c1").Rules) != len(agentroles.Rules("c1")) || f.record("c1").Driver == "" {
			t.Errorf("without the %s: %v, %d rules, remembered by %q", name, err, len(f.role("c1").Rules), f.record("c1").Driver)
		}
		f.settle("c2")
		if role := clusterRole("c2"); f.client.Get(t.Context(), client.ObjectKeyFromObject(role), role) == nil {
			t.Errorf("without the %s a cluster got a role of its own", name)
		}
		missing.SetResourceVersion("")
		if err := f.client.Create(t.Context(), missing); err != nil {
			t.Fatal(err)
		}
		f.settle("c1")
		if has := f.has(); slices.ContainsFunc(has, func(has string) bool { return strings.HasPrefix(has, "ClusterRole") }) {
			t.Errorf("with the %s there is %q", name, has)
		}
	}
}

// The revocation of a cluster's rights does not wait for the shared roles.
func TestOlderHub_DeniedClusterLosesRoleAtOnce(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	older(f)
	if err := f.client.Delete(t.Context(), sharedBinding()); err != nil {
		t.Fatal(err)
	}
	f.change("c1", deny)
	f.settle("c1")
	if diff := cmp.Diff(afterDeny, f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The record in the new place may have been written since.
func TestOlderHub_NewRecordHasPrecedence(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	f.remember("c1", func(kept *record.Record) { kept.Key = "old" })
	f.age("c1")
	f.killAfter = 1
	_, _ = f.reconcile("c1")
	f.restart()
	f.remember("c1", func(kept *record.Record) { kept.Key = "new" })
	f.settle("c1")
	if got := f.record("c1").Key; got != "new" || slices.ContainsFunc(f.has(), func(has string) bool { return strings.HasPrefix(has, "ClusterRole") }) {
		t.Errorf("the key is %q, there is %q", got, f.has())
	}
}

// A ClusterRole without its label is in no cache. Its grants are found all the same.
func TestOlderHub_UncachedRecordsAreMigrated(t *testing.T) {
	for name, do := range map[string]func(*clusterv1.ManagedCluster){
		"accepted": func(c *clusterv1.ManagedCluster) { c.Annotations[identity] = "two" },
		"denied":   deny,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster("c1"))
			older(f)
			f.change("c1", do)
			f.process.client = &lag{Client: f.client, none: true}
			for range 3 {
				if _, err := f.reconcile("c1"); err != nil {
					t.Fatal(err)
				}
			}
			f.restart()
			f.settle("c1")
			want := map[string][]string{"accepted": everything, "denied": afterDeny}[name]
			if diff := cmp.Diff(want, f.has()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Records that are not copied yet count for other clusters: none gets what another one has.
func TestOlderHub_UnmigratedIdentitiesAreReserved(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	older(f.fixture)
	arn := f.arn("c1")
	// The agent of the cluster claims another ARN.
	f.change("c1", func(c *clusterv1.ManagedCluster) {
		c.Annotations[registration.AnnotationManagedClusterARN] = f.arn("c2")
	})
	f.join("x", arn)
	f.restart()
	if _, err := f.reconcile("x"); err != nil {
		t.Fatal(err)
	}
	if got := f.accepted("x"); !strings.HasPrefix(got, "False Error ") || !strings.Contains(got, `belongs to the cluster "c1"`) {
		t.Errorf("it is %q", got)
	}
}

// A hub with the manifests of an earlier version reports what is missing, and grants nothing.
func TestAccept_ReportsMissingRecordsNamespace(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.process.client = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return apierrors.NewNotFound(corev1.Resource("namespaces"), obj.GetNamespace())
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	if result, err := f.reconcile("c1"); err != nil || result.RequeueAfter == 0 {
		t.Errorf("%v, %v", result, err)
	}
	if got := f.accepted("c1"); !strings.HasPrefix(got, `False Error the namespace "clusterhub-registration", `) || len(f.cloud.granted) != 0 {
		t.Errorf("granted %v, it is %q", f.cloud.granted, got)
	}
}
