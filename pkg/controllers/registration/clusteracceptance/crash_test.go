// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// everything lists the objects of an accepted cluster.
var everything = []string{
	"ManagedCluster /c1",
	"Namespace /c1",
	`ConfigMap clusterhub-registration/c1 driver="cloud" record="one" granted=true revoking=false`,
	"RoleBinding c1/open-cluster-management:managedcluster:c1:registration",
	"RoleBinding c1/open-cluster-management:managedcluster:c1:work",
	"Lease c1/managed-cluster-lease",
	"granted c1/one",
}

// afterDeny lists the objects of a denied cluster. Its agents may see that it is denied, by the role that all share.
var afterDeny = []string{
	"ManagedCluster /c1",
	"Namespace /c1",
	`ConfigMap clusterhub-registration/c1 driver="" record="" granted=false revoking=false`,
}

// A process may be killed after any effect. The next one reaches the same result, and calls the driver at most once more.
func TestKilled_AfterAnyWriteNextProcessCompletes(t *testing.T) {
	for name, test := range map[string]struct {
		// before prepares the hub; do is the action of the user.
		before, do func(f *fixture)
		want       []string
		condition  string
	}{
		"accept": {
			before: func(*fixture) {}, do: func(*fixture) {}, want: everything,
			condition: "True HubClusterAdminAccepted Accepted by hub cluster admin",
		},
		"deny": {
			before: func(f *fixture) { f.settle("c1") }, do: func(f *fixture) { f.change("c1", deny) }, want: afterDeny,
			condition: "False HubClusterAdminDenied Denied by hub cluster admin",
		},
		"delete": {before: func(f *fixture) { f.settle("c1") }, do: deleteCluster, want: []string{"Namespace /c1"}},
		"delete after deny": {
			before: func(f *fixture) { f.settle("c1"); f.change("c1", deny); f.settle("c1") },
			do:     deleteCluster, want: []string{"Namespace /c1"},
		},
		"accept again as something else, before the denial was finished": {
			before: func(f *fixture) {
				f.settle("c1")
				f.change("c1", deny)
				f.killAfter = 1
				_, _ = f.reconcile("c1")
				f.restart()
			},
			do: func(f *fixture) {
				f.change("c1", func(c *clusterv1.ManagedCluster) { accept(c); c.Annotations[identity] = "two" })
			},
			want:      slices.Concat(everything[:2], []string{strings.ReplaceAll(everything[2], "one", "two")}, everything[3:6], []string{"granted c1/two"}),
			condition: "True HubClusterAdminAccepted Accepted by hub cluster admin",
		},
		"a hub that was older": {
			before: older, do: func(*fixture) {}, want: everything,
			condition: "True HubClusterAdminAccepted Accepted by hub cluster admin",
		},
		"deny on a hub that was older": {
			before: older, do: func(f *fixture) { f.change("c1", deny) }, want: afterDeny,
			condition: "False HubClusterAdminDenied Denied by hub cluster admin",
		},
		"delete on a hub that was older": {before: older, do: deleteCluster, want: []string{"Namespace /c1"}},
		"delete by force on a hub that was older": {
			before: older,
			do: func(f *fixture) {
				f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
				deleteCluster(f)
			},
			want: []string{"Namespace /c1"},
		},
		"accept again as something else, on a hub that was older when the denial was begun": {
			before: func(f *fixture) {
				f.settle("c1")
				f.remember("c1", func(kept *record.Record) { kept.Granted, kept.Revoking = time.Time{}, true })
				f.age("c1")
			},
			do: func(f *fixture) {
				f.change("c1", func(c *clusterv1.ManagedCluster) { c.Annotations[identity] = "two" })
			},
			want:      slices.Concat(everything[:2], []string{strings.ReplaceAll(everything[2], "one", "two")}, everything[3:6], []string{"granted c1/two"}),
			condition: "True HubClusterAdminAccepted Accepted by hub cluster admin",
		},
		"the cluster was deleted by force": {
			before: func(f *fixture) { f.settle("c1") },
			do: func(f *fixture) {
				f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
				deleteCluster(f)
			},
			want: []string{"Namespace /c1"},
		},
	} {
		run := func(t *testing.T, mode string) {
			for n := 1; ; n++ {
				f := newFixture(t, newCluster("c1")).use(mode)
				test.before(f)
				f.restart()
				test.do(f)
				grants, revokes := f.cloud.grants["c1"], f.cloud.revokes
				f.effects, f.killAfter = nil, n
				for range 10 {
					if _, err := f.reconcile("c1"); f.dead {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
				finished := !f.dead
				done := slices.Clone(f.effects)
				f.restart()
				f.settle("c1")
				if diff := cmp.Diff(f.want(test.want), f.has()); diff != "" {
					t.Errorf("killed after %q (-want +got):\n%s", done, diff)
				}
				if test.condition != "" && f.accepted("c1") != test.condition {
					t.Errorf("killed after %q: condition %q", done, f.accepted("c1"))
				}
				if f.cloud.grants["c1"]-grants > 2 || f.cloud.revokes-revokes > 2 {
					t.Errorf("killed after %q: %d grants and %d revocations", done, f.cloud.grants["c1"]-grants, f.cloud.revokes-revokes)
				}
				if finished {
					if n < 3 {
						t.Fatalf("only %d effects: %q", n, done)
					}
					return
				}
			}
		}
		for _, mode := range modes {
			t.Run(mode+", "+name, func(t *testing.T) { run(t, mode) })
		}
	}
}

func deleteCluster(f *fixture) {
	f.Helper()
	if err := f.client.Delete(f.Context(), f.cluster("c1")); err != nil {
		f.Fatal(err)
	}
}

// The record is written ahead: at no time is anything granted that no record has.
func TestKilled_NothingIsGrantedWithoutRecord(t *testing.T) {
	for n := 1; n < 20; n++ {
		f := newFixture(t, newCluster("c1"))
		f.killAfter = n
		_, _ = f.reconcile("c1")
		granted := len(f.cloud.granted) > 0
		f.restart()
		if !granted {
			continue
		}
		if rec := f.record("c1"); rec.Driver != "cloud" || rec.Identity != "one" || rec.UID != "uid-of-c1" {
			t.Fatalf("killed after %q: granted, and the record is %+v", f.effects, rec)
		}
		if !slices.Contains(f.cluster("c1").Finalizers, registration.Finalizer) {
			t.Fatalf("killed after %q: granted, and the cluster can vanish", f.effects)
		}
	}
}

// The rights are removed first: an agent loses them even if the cloud does not respond.
func TestRights_RevokedBeforeDriverIsCalled(t *testing.T) {
	for name, do := range map[string]func(*fixture){
		"deny": func(f *fixture) { f.change("c1", deny) }, "delete": deleteCluster,
	} {
		run := func(t *testing.T, mode string) {
			f := newFixture(t, newCluster("c1")).use(mode)
			older(f)
			do(f)
			f.cloud.fail = fmt.Errorf("the cloud is away")
			f.effects = nil
			result, err := f.reconcile("c1")
			if err != nil || result.RequeueAfter == 0 {
				t.Fatalf("%v, %v, want another try", result, err)
			}
			for _, binding := range roleBindings("c1") {
				if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err == nil {
					t.Errorf("%s is still there", binding.Name)
				}
			}
			role := clusterRole("c1")
			if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(role), role); client.IgnoreNotFound(err) != nil || len(role.Rules) > 1 {
				t.Errorf("the rules are %v, %v", role.Rules, err)
			}
			if got := f.accepted("c1"); got != "False Error revoking the cluster's identity: the cloud is away" {
				t.Errorf("condition %q", got)
			}
			if f.effects[len(f.effects)-2] != "revoke c1 one" {
				t.Errorf("the order is %q, want all rights gone before the driver is asked", f.effects)
			}
			f.cloud.fail = nil
			f.settle("c1")
			if len(f.cloud.granted) != 0 {
				t.Errorf("still granted: %v", f.cloud.granted)
			}
		}
		for _, mode := range modes {
			t.Run(mode+", "+name, func(t *testing.T) { run(t, mode) })
		}
	}
}

// The right to work stays while there are works to clean up, and no other right does.
func TestRights_ToCleanUpWorkRemain(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	work := roleBindings("c1")[1]
	hold := func(finalizers ...string) {
		t.Helper()
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			t.Fatal(err)
		}
		work.Finalizers = finalizers
		if err := f.client.Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	hold(registration.WorkFinalizer)
	f.change("c1", deny)
	f.settle("c1")
	want := slices.Concat(afterDeny, []string{"RoleBinding c1/open-cluster-management:managedcluster:c1:work"})
	if diff := cmp.Diff(want, f.has()); diff != "" || f.accepted("c1") != "False HubClusterAdminDenied Denied by hub cluster admin" {
		t.Errorf("condition %q (-want +got):\n%s", f.accepted("c1"), diff)
	}
	deleteCluster(f)
	for range 3 {
		if result, err := f.reconcile("c1"); err != nil || result.RequeueAfter != bindingInterval {
			t.Errorf("%v, %v", result, err)
		}
	}
	hold()
	f.settle("c1")
	if diff := cmp.Diff([]string{"Namespace /c1"}, f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A stale cache causes no second grant, and nothing that it does not show yet is left.
func TestCaches_LagCausesNoSecondGrant(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	old := must(record.Get(t.Context(), f.client, "c1"))(t)
	ungranted := record.Of(old)
	ungranted.Granted = time.Time{}
	ungranted.Write(old)
	lagging := &lag{Client: f.client, kept: old}
	f.process.client = lagging
	for range 3 {
		if _, err := f.reconcile("c1"); err != nil {
			t.Fatal(err)
		}
	}
	if f.cloud.grants["c1"] != 1 {
		t.Errorf("%d grants, want 1", f.cloud.grants["c1"])
	}
	// Not even the record is in the cache.
	lagging.kept, lagging.none = nil, true
	f.change("c1", deny)
	f.settle("c1")
	if diff := cmp.Diff(afterDeny, f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	deleteCluster(f)
	f.settle("c1")
	if diff := cmp.Diff([]string{"Namespace /c1"}, f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lag is a client whose cache has an old record, or none of the objects of a cluster.
type lag struct {
	client.Client
	kept *corev1.ConfigMap
	none bool
}

func (l *lag) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kept, ok := obj.(*corev1.ConfigMap)
	switch {
	case ok && l.kept != nil:
		l.kept.DeepCopyInto(kept)
		return nil
	case l.none:
		if _, ok := obj.(*clusterv1.ManagedCluster); !ok {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
	}
	return l.Client.Get(ctx, key, obj, opts...)
}
