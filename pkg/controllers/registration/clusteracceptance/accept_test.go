// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The rules and subjects are those of upstream, with the right to leave, and without the right to see certificate requests of others.
func TestAccept_GrantsUpstreamRights(t *testing.T) {
	f := newFixture(t, newCluster("c1")).use(agentroles.PerCluster)
	f.settle("c1")
	if diff := cmp.Diff(f.want(everything), f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const group = "cluster.open-cluster-management.io"
	rule := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	c1 := []string{"c1"}
	want := []rbacv1.PolicyRule{
		rule("certificates.k8s.io", "certificatesigningrequests", nil, "create", "get"),
		rule("register.open-cluster-management.io", "managedclusters/clientcertificates", nil, "renew"),
		rule(group, "managedclusters", c1, "get", "list", "update", "watch"),
		rule(group, "managedclusters/status", c1, "patch", "update"),
		rule(group, "managedclusters/leave", c1, "update"),
		// Upstream has no edge nodes.
		rule("edge.clusterhub.dev", "edgenodes", c1, "get", "list", "watch"),
		rule("edge.clusterhub.dev", "edgenodes", nil, "create"),
		rule("edge.clusterhub.dev", "edgenodes/status", c1, "patch", "update"),
	}
	if diff := cmp.Diff(want, f.role("c1").Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	subjects := []rbacv1.Subject{
		{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:open-cluster-management:c1"},
		{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "open-cluster-management:c1"},
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: registration.ClusterRole("c1")}, binding); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != registration.ClusterRole("c1") {
		t.Errorf("bound to %s (-want +got):\n%s", binding.RoleRef.Name, diff)
	}
	for name, role := range map[string]string{"registration": registration.AgentClusterRole, "work": registration.WorkClusterRole} {
		binding := &rbacv1.RoleBinding{}
		key := client.ObjectKey{Namespace: "c1", Name: "open-cluster-management:managedcluster:c1:" + name}
		if err := f.client.Get(t.Context(), key, binding); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != role || binding.RoleRef.Kind != "ClusterRole" {
			t.Errorf("%s: bound to %v (-want +got):\n%s", name, binding.RoleRef, diff)
		}
	}
	namespace := &corev1.Namespace{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, namespace); err != nil || namespace.Labels[registration.ClusterNameLabel] != "c1" {
		t.Errorf("namespace with labels %v, %v", namespace.Labels, err)
	}
	if got := f.happened(); !slices.Equal(got, []string{"Normal ManagedClusterAccepted The cluster c1 is accepted"}) {
		t.Errorf("events %q", got)
	}
	// The flag is for agents of upstream; the next process, without the flag, removes the right.
	f.process.AgentRoles.ListCSRs = true
	f.settle("c1")
	if got := f.role("c1").Rules[0].Verbs; !slices.Equal(got, []string{"create", "get", "list", "watch"}) {
		t.Errorf("agents that may list requests have %v", got)
	}
	f.restart()
	f.settle("c1")
	if diff := cmp.Diff(want, f.role("c1").Rules); diff != "" {
		t.Errorf("rules after the flag is gone (-want +got):\n%s", diff)
	}
}

func TestAccept_SecondReconcileDoesNothing(t *testing.T) {
	for _, mode := range modes {
		f := newFixture(t, newCluster("c1")).use(mode)
		f.settle("c1")
		for range 3 {
			f.effects = nil
			f.restart()
			if _, err := f.reconcile("c1"); err != nil || len(f.effects) != 0 {
				t.Errorf("%s: %v, effects %q", mode, err, f.effects)
			}
		}
	}
}

func TestNeverAccepted_CreatesNothing(t *testing.T) {
	cluster := newCluster("c1")
	cluster.Spec.HubAcceptsClient = false
	f := newFixture(t, cluster)
	f.cloud.approves = true // the driver approves, but auto approval is off
	f.settle("c1")
	deleteCluster(f)
	f.settle("c1")
	if len(f.effects) != 1 || len(f.has()) != 0 {
		t.Errorf("effects %q, left %q", f.effects, f.has())
	}
}

// Changes by other clients are reverted; their events cause a reconciliation.
func TestAccept_RepairsChanges(t *testing.T) {
	f := newFixture(t, newCluster("c1")).use(agentroles.PerCluster)
	f.settle("c1")
	role, binding := f.role("c1"), roleBindings("c1")[0]
	role.Rules = nil
	binding.Subjects = nil
	global := clusterRoleBinding("c1")
	global.RoleRef.Name = "another"
	for _, err := range []error{
		f.client.Update(t.Context(), role), f.client.Update(t.Context(), binding),
		f.client.Delete(t.Context(), global), f.client.Create(t.Context(), global),
		f.client.Delete(t.Context(), roleBindings("c1")[1]),
		f.client.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: objectMeta("c1", "c1", registration.LeaseName)}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.settle("c1")
	if diff := cmp.Diff(f.want(everything), f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(global), global); err != nil || global.RoleRef.Name != registration.ClusterRole("c1") {
		t.Errorf("the binding is to %s, %v", global.RoleRef.Name, err)
	}
	if f.cloud.grants["c1"] != 1 {
		t.Errorf("%d grants, want 1", f.cloud.grants["c1"])
	}
}

// The record of an accepted cluster does not change, whatever an agent writes into its own ManagedCluster.
func TestAccept_PinsRecord(t *testing.T) {
	for name, change := range map[string]func(*clusterv1.ManagedCluster){
		"another identity": func(c *clusterv1.ManagedCluster) { c.Annotations[identity] = "another" },
		"no identity":      func(c *clusterv1.ManagedCluster) { c.Annotations[identity] = "malformed" },
		"another driver":   func(c *clusterv1.ManagedCluster) { c.Annotations["test/driver"] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster("c1"))
			f.settle("c1")
			f.change("c1", change)
			f.settle("c1")
			if diff := cmp.Diff(everything, f.has()); diff != "" || f.cloud.grants["c1"] != 1 {
				t.Errorf("%d grants (-want +got):\n%s", f.cloud.grants["c1"], diff)
			}
			if got := f.accepted("c1"); !strings.HasPrefix(got, "True HubClusterAdminAccepted Accepted by hub cluster admin. The cluster would now be accepted with another identity") {
				t.Errorf("condition %q", got)
			}
			if got := f.happened(); len(got) != 2 || !strings.HasPrefix(got[1], "Warning ManagedClusterRegistrationChanged") {
				t.Errorf("events %q", got)
			}
			f.change("c1", deny)
			f.settle("c1")
			if len(f.cloud.granted) != 0 {
				t.Errorf("left: %v", f.cloud.granted)
			}
		})
	}
}

func TestAccept_ReportsErrors(t *testing.T) {
	namespaced := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: labels}}
	}
	for name, test := range map[string]struct {
		cluster string
		change  func(*clusterv1.ManagedCluster)
		with    []client.Object
		want    string
	}{
		"what the cluster says is malformed": {
			change: func(c *clusterv1.ManagedCluster) { c.Annotations[identity] = "malformed" },
			want:   "the annotation test/identity is malformed",
		},
		"no driver": {
			change: func(c *clusterv1.ManagedCluster) { delete(c.Annotations, "test/driver") },
			want:   "none of the enabled registration drivers",
		},
		// Its ClusterRole would be the one that all clusters share.
		"the name of a shared role":  {cluster: "work", want: `no cluster can be accepted under the name "work"`},
		"the name of another one":    {cluster: "registration", want: `no cluster can be accepted under the name "registration"`},
		"the name of a shared group": {cluster: "managed-clusters", want: `no cluster can be accepted under the name "managed-clusters"`},
		// Its agents would get rights in a namespace of another owner.
		"a namespace of others":          {with: []client.Object{namespaced(nil)}, want: `the namespace "c1" exists and is not the cluster's`},
		"a namespace of another cluster": {with: []client.Object{namespaced(map[string]string{registration.ClusterNameLabel: "c2"})}, want: `the namespace "c1" exists and is not the cluster's`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster("c1")
			if test.cluster != "" {
				cluster = newCluster(test.cluster)
			}
			if test.change != nil {
				test.change(cluster)
			}
			f := newFixture(t, append(test.with, cluster)...)
			for range 3 {
				if _, err := f.reconcile(cluster.Name); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.accepted(cluster.Name); !strings.HasPrefix(got, "False Error "+test.want) {
				t.Errorf("condition %q, want %q", got, test.want)
			}
			for _, has := range f.has() {
				if strings.Contains(has, "Role") || strings.HasPrefix(has, "granted") {
					t.Errorf("there is %s", has)
				}
			}
		})
	}
}

func TestAccept_AdoptsNamespaceOfCluster(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: objectMeta("c1", "", "c1")}
	f := newFixture(t, newCluster("c1"), namespace)
	f.settle("c1")
	if diff := cmp.Diff(everything, f.has()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, namespace); err != nil || namespace.Annotations[registration.AnnotationMade] != "" {
		t.Errorf("%v, annotations %v: it would be removed", err, namespace.Annotations)
	}
}

// A failing driver is called again with an increasing delay. The condition that reports the failure does not cause a hot loop.
func TestAccept_BackoffPerCluster(t *testing.T) {
	f := newFixture(t, newCluster("c1"), newCluster("c2"))
	f.cloud.fail = errors.New("throttled")
	tries := 0
	for end := start.Add(time.Hour); f.clock.Now().Before(end); tries++ {
		result, err := f.reconcile("c1")
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*lastRetry {
			t.Fatalf("%v, %v", result, err)
		}
		// Events do not cause calls of the driver.
		calls := f.cloud.grants["c1"]
		for range 5 {
			if _, err := f.reconcile("c1"); err != nil || f.cloud.grants["c1"] != calls {
				t.Fatalf("%v, %d calls, want %d", err, f.cloud.grants["c1"], calls)
			}
		}
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
	}
	if calls := f.cloud.grants["c1"]; calls < 10 || calls > 25 {
		t.Errorf("%d calls in an hour", calls)
	}
	if got := f.accepted("c1"); got != "False Error granting the cluster its identity: throttled" {
		t.Errorf("condition %q", got)
	}
	f.cloud.fail = nil
	f.settle("c2")
	if f.accepted("c2") != "True HubClusterAdminAccepted Accepted by hub cluster admin" {
		t.Errorf("the other cluster: %q", f.accepted("c2"))
	}
	f.settle("c1")
	if f.accepted("c1") != "True HubClusterAdminAccepted Accepted by hub cluster admin" {
		t.Errorf("after the failure: %q", f.accepted("c1"))
	}
}

// Denying a cluster while a grant fails revokes at once what the grant may have created.
func TestDeny_RevokesPartialGrant(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.cloud.fail, f.cloud.half = errors.New("timeout"), true
	for range 2 {
		if _, err := f.reconcile("c1"); err != nil {
			t.Fatal(err)
		}
	}
	f.cloud.fail = nil
	f.change("c1", deny)
	if _, err := f.reconcile("c1"); err != nil || len(f.cloud.granted) != 0 {
		t.Errorf("%v, left: %v", err, f.cloud.granted)
	}
}

func TestAutoApproval_OncePerCluster(t *testing.T) {
	cluster := newCluster("c1")
	cluster.Spec.HubAcceptsClient = false
	shared := newCluster("work")
	shared.Spec.HubAcceptsClient = false
	f := newFixture(t, cluster, shared)
	f.cloud.approves = true
	f.process.AutoApproval = true
	f.settle("c1")
	got := f.cluster("c1")
	if !got.Spec.HubAcceptsClient || got.Annotations[registration.AnnotationAutoAccepted] != "2030-01-01T00:00:00Z" {
		t.Errorf("accepted %t at %q", got.Spec.HubAcceptsClient, got.Annotations[registration.AnnotationAutoAccepted])
	}
	f.change("c1", deny)
	f.settle("c1")
	if f.cluster("c1").Spec.HubAcceptsClient {
		t.Error("accepted again")
	}
	f.settle("work")
	if f.cluster("work").Spec.HubAcceptsClient {
		t.Error("a name that no cluster may have is accepted")
	}
}

// A new cluster of the same name starts without a grant: what the first one had is revoked before.
func TestAccept_NewClusterOfSameNameInheritsNothing(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
	deleteCluster(f)
	second := newCluster("c1")
	second.UID, second.Annotations[identity] = "another", "two"
	if err := f.client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f.settle("c1")
	if diff := cmp.Diff(map[string]driver.Record{"c1/two": "two"}, f.cloud.granted); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
}
