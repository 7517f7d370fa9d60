// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var errKilled = errors.New("the process is killed")

// cloud is a driver with its grants. Its plan is the value of an annotation of the cluster.
type cloud struct {
	f        *fixture
	name     string
	granted  map[string]driver.Record
	grants   map[string]int
	revokes  int
	fail     error
	interval time.Duration
	approves bool
	// half makes a failing call do a part of its work.
	half bool
}

const identity = "test/identity"

func (c *cloud) Name() string { return c.name }
func (c *cloud) Handles(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Annotations["test/driver"] == c.name
}
func (c *cloud) Plan(cluster *clusterv1.ManagedCluster) (driver.Record, error) {
	if cluster.Annotations[identity] == "malformed" {
		return "", errors.New("the annotation test/identity is malformed")
	}
	return driver.Record(cluster.Annotations[identity]), nil
}
func (c *cloud) Grant(_ context.Context, cluster string, record driver.Record) error {
	return c.f.effect("grant "+cluster+" "+string(record), func() error {
		c.grants[cluster]++
		if c.fail == nil || c.half {
			c.granted[cluster+"/"+string(record)] = record
		}
		return c.fail
	})
}
func (c *cloud) Revoke(_ context.Context, cluster string, record driver.Record) error {
	return c.f.effect("revoke "+cluster+" "+string(record), func() error {
		c.revokes++
		if c.fail == nil {
			delete(c.granted, cluster+"/"+string(record))
		}
		return c.fail
	})
}
func (c *cloud) CheckInterval() time.Duration                { return c.interval }
func (c *cloud) AutoApproves(*clusterv1.ManagedCluster) bool { return c.approves }

// fixture is a hub, a cloud, and a process that may be killed after any effect.
type fixture struct {
	*testing.T
	client client.Client
	cloud  *cloud
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder

	// mu guards what effects of a fake's server change, which may not have responded yet.
	mu sync.Mutex
	// effects are the writes in the order of time.
	effects []string
	// killAfter is the number of effects after which the process dies; -1 is never.
	killAfter int
	dead      bool
	// outdated is the number of writes of conditions that fail with a conflict.
	outdated int

	// drivers returns the drivers of a new process, which is only the cloud unless a test sets others.
	drivers func() driver.Drivers
	process *Reconciler
	// autoApproval and roles are options of a new process.
	autoApproval bool
	roles        agentroles.Options
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newFixture(t *testing.T, objs ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(start), killAfter: -1, roles: agentroles.NewOptions()}
	f.cloud = &cloud{f: f, name: "cloud", granted: map[string]driver.Record{}, grants: map[string]int{}}
	f.drivers = func() driver.Drivers { return driver.Drivers{f.cloud} }
	f.client = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objs...).WithObjects(sharedRole(), sharedBinding()).
		WithStatusSubresource(&clusterv1.ManagedCluster{}).WithInterceptorFuncs(f.interceptors()).
		WithIndex(&clusterv1.ManagedCluster{}, byIdentity, f.claimed).WithIndex(&corev1.ConfigMap{}, byIdentity, f.claimed).
		WithIndex(&rbacv1.ClusterRole{}, byIdentity, f.claimed).Build()
	f.restart()
	return f
}

// claimed returns the index values of the caches.
func (f *fixture) claimed(obj client.Object) []string { return f.process.newIdentities().claimed(obj) }

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clusterv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme,
		workv1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	// Only their metadata matters.
	scheme.AddKnownTypeWithName(delivered[0], &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(addOns.WithKind(delivered[0].Kind+"List"), &metav1.PartialObjectMetadataList{})
	return scheme
}

// restart starts a new process, which knows only what is written.
func (f *fixture) restart() {
	f.dead, f.killAfter = false, -1
	f.events = events.NewFakeRecorder(10_000)
	f.process = newReconciler(f.client, f.client, f.events, f.clock, Options{
		Drivers: f.drivers(), AutoApproval: f.autoApproval, AgentRoles: f.roles,
	})
}

// effect does something that lasts, unless the process is dead. The process dies right after its last effect.
func (f *fixture) effect(what string, do func() error) error {
	if f.isDead() {
		return errKilled
	}
	f.mu.Lock()
	f.effects = append(f.effects, what)
	f.mu.Unlock()
	err := do()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.killAfter > 0 {
		f.killAfter--
		if f.killAfter == 0 {
			f.dead = true
			return errKilled
		}
	}
	return err
}

func (f *fixture) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

func (f *fixture) interceptors() interceptor.Funcs {
	describe := func(verb string, obj client.Object) string {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
		return verb + " " + kind + " " + obj.GetName()
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if f.isDead() {
				return errKilled
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.effect(describe("create", obj), func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.effect(describe("delete", obj), func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return f.effect(describe("patch", obj), func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if f.outdated > 0 {
				f.outdated--
				return apierrors.NewConflict(clusterv1.Resource("managedclusters"), obj.GetName(), errors.New("somebody else was faster"))
			}
			return f.effect(describe("patch "+sub, obj), func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
}

func newCluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Generation: 1,
			Annotations: map[string]string{"test/driver": "cloud", identity: "one"},
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// reconcile reconciles the cluster once.
func (f *fixture) reconcile(name string) (reconcile.Result, error) {
	f.Helper()
	result, err := f.process.Reconcile(f.Context(), request(name))
	f.isDead() // effects of servers count from here on
	return result, err
}

// settle reconciles until nothing is left to do, as events and timers would.
func (f *fixture) settle(name string) {
	f.Helper()
	for range 20 {
		before := len(f.effects)
		result, err := f.reconcile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(f.effects) == before && (result.RequeueAfter == 0 || result.RequeueAfter > lastRetry*2) {
			return
		}
		if result.RequeueAfter > 0 && result.RequeueAfter <= lastRetry*2 {
			f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
		}
	}
	f.Fatalf("does not settle: %v", f.effects)
}

// change changes the cluster as a user would.
func (f *fixture) change(name string, change func(*clusterv1.ManagedCluster)) {
	f.Helper()
	cluster := f.cluster(name)
	change(cluster)
	cluster.Generation++
	if err := f.client.Update(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
}

func deny(c *clusterv1.ManagedCluster)   { c.Spec.HubAcceptsClient = false }
func accept(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }

func (f *fixture) cluster(name string) *clusterv1.ManagedCluster {
	f.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		f.Fatal(err)
	}
	return cluster
}

func (f *fixture) role(name string) *rbacv1.ClusterRole {
	f.Helper()
	role := clusterRole(name)
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		f.Fatal(err)
	}
	return role
}

// record returns the record of a cluster.
func (f *fixture) record(name string) record.Record {
	f.Helper()
	kept, err := record.Get(f.Context(), f.client, name)
	if err != nil || kept == nil {
		f.Fatalf("record of %s: %v, %v", name, kept, err)
	}
	return record.Of(kept)
}

// remember changes the record, as pkg/controllers/registration/clustercertificates does.
func (f *fixture) remember(name string, change func(*record.Record)) {
	f.Helper()
	kept := must(record.Get(f.Context(), f.client, name))(f.T)
	if err := record.Patch(f.Context(), f.client, kept, change); err != nil {
		f.Fatal(err)
	}
}

// accepted returns the condition.
func (f *fixture) accepted(name string) string {
	f.Helper()
	c := meta.FindStatusCondition(f.cluster(name).Status.Conditions, registration.ConditionHubAccepted)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

// has lists all objects of the hub, and all grants.
func (f *fixture) has() []string {
	f.Helper()
	var has []string
	for _, list := range []client.ObjectList{
		&clusterv1.ManagedClusterList{}, &corev1.NamespaceList{}, &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&rbacv1.RoleBindingList{}, &coordinationv1.LeaseList{},
	} {
		if err := f.client.List(f.Context(), list); err != nil {
			f.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if obj.GetName() == agentroles.ClusterRole {
				return nil // it exists for all clusters
			}
			text := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.") + " " + client.ObjectKeyFromObject(obj).String()
			switch obj := obj.(type) {
			case *rbacv1.ClusterRole:
				text += fmt.Sprintf(" rules=%d", len(obj.Rules))
				if record.HasLegacy(obj) {
					text += " with the record of an older hub"
				}
			case *corev1.ConfigMap:
				rec := record.Of(obj)
				text += fmt.Sprintf(" driver=%q record=%q granted=%t revoking=%t", rec.Driver, rec.Identity, !rec.Granted.IsZero(), rec.Revoking)
			}
			has = append(has, text)
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.cloud.granted)) {
		has = append(has, "granted "+key)
	}
	return has
}

// happened returns the events.
func (f *fixture) happened() (all []string) {
	for {
		select {
		case e := <-f.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
