// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentroles

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// fixture is a front with the controller.
type fixture struct {
	*testing.T
	client.Client
	options Options
	// writes is the number of requests that change something.
	writes int
}

func newFixture(t *testing.T, objs ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clusterv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, apiregistrationv1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, options: NewOptions()}
	f.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			f.writes++
			return c.Apply(ctx, obj, opts...)
		},
	}).Build()
	f.add(service("v1", hubAPIServer()), service("v1beta2", hubAPIServer()), holding(apiregistrationv1.ConditionTrue))
	f.add(ofWorks("v1", hubAPIServer()), ofWorks("v1alpha1", hubAPIServer()))
	other := service("v1", &apiregistrationv1.ServiceReference{Namespace: "kube-system", Name: "metrics-server"})
	other.Name, other.Spec.Group = "v1.metrics.k8s.io", "metrics.k8s.io"
	builtIn := service("v1", nil)
	builtIn.Name, builtIn.Spec.Group = "v1.apps", "apps"
	f.add(other, builtIn)
	for _, s := range (Options{}).shared() {
		f.add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Rules: s.rules})
	}
	return f
}

func hubAPIServer() *apiregistrationv1.ServiceReference {
	return &apiregistrationv1.ServiceReference{Namespace: "clusterhub-system", Name: "hub-apiserver", Port: new(int32(12345))}
}

// service returns an APIService of a version of the clusters. Without a Service it is for a CustomResourceDefinition.
func service(version string, leadsTo *apiregistrationv1.ServiceReference) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version + "." + clusterv1.GroupName},
		Spec:       apiregistrationv1.APIServiceSpec{Group: clusterv1.GroupName, Version: version, Service: leadsTo},
	}
}

// ofWorks returns the APIService of a version of the works.
func ofWorks(version string, leadsTo *apiregistrationv1.ServiceReference) *apiregistrationv1.APIService {
	s := service(version, leadsTo)
	s.Name, s.Spec.Group = version+"."+workv1.GroupName, workv1.GroupName
	return s
}

// holding returns the APIService whose condition shows whether hub-apiserver limits agents to their own clusters.
func holding(available apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
	s := service("v1alpha1", hubAPIServer())
	s.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: available}}
	return s
}

func (f *fixture) add(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		if err := f.Create(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) remove(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		if err := f.Delete(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) reconcile() reconcile.Result {
	f.Helper()
	r := &Reconciler{Options: f.options, client: f.Client, live: f.Client}
	result, err := r.Reconcile(f.Context(), reconcile.Request{})
	if err != nil {
		f.Fatal(err)
	}
	return result
}

// bound returns the shared roles that are bound to all agents.
func (f *fixture) bound() (names []string) {
	f.Helper()
	list := &rbacv1.ClusterRoleBindingList{}
	if err := f.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	for i := range list.Items {
		if b := &list.Items[i]; b.Name == ClusterRole || b.Name == ListCSRsClusterRole {
			if !asWanted(b) {
				f.Errorf("the binding %s is %v, %v, %v", b.Name, b.Labels, b.RoleRef, b.Subjects)
			}
			names = append(names, b.Name)
		}
	}
	return names
}

func (f *fixture) want(what string, names ...string) {
	f.Helper()
	if got := f.bound(); !slices.Equal(got, names) {
		f.Errorf("%s: bound are %q, want %q", what, got, names)
	}
}

// The role is bound only while hub-apiserver serves the clusters in all versions.
func TestReconcile_BindsRoleOnlyWhileClustersAreServed(t *testing.T) {
	other := func(namespace, name string) *apiregistrationv1.ServiceReference {
		return &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	}
	for what, change := range map[string]struct{ do, undo func(f *fixture) }{
		"a CRD of another version": {
			func(f *fixture) { f.add(service("v1alpha2", nil)) }, func(f *fixture) { f.remove(service("v1alpha2", nil)) },
		},
		"a CRD in place of ours": {
			func(f *fixture) { f.remove(service("v1", nil)); f.add(service("v1", nil)) },
			func(f *fixture) { f.remove(service("v1", nil)); f.add(service("v1", hubAPIServer())) },
		},
		"another Service": {
			func(f *fixture) { f.add(service("v2", other("clusterhub-system", "eve"))) }, func(f *fixture) { f.remove(service("v2", nil)) },
		},
		"one of another namespace": {
			func(f *fixture) { f.add(service("v2", other("eve", "hub-apiserver"))) }, func(f *fixture) { f.remove(service("v2", nil)) },
		},
		"nothing": {
			func(f *fixture) { f.remove(service("v1", nil), service("v1beta2", nil), service("v1alpha1", nil)) },
			func(f *fixture) { f.add(service("v1", hubAPIServer()), holding(apiregistrationv1.ConditionTrue)) },
		},
	} {
		for _, mode := range []string{Shared, PerCluster} {
			f := newFixture(t)
			f.options.ListCSRs = true
			f.reconcile()
			f.want(what, ClusterRole, ListCSRsClusterRole)
			// In per-cluster mode the binding would stay for a cluster without a role of its own.
			f.add(accepted("c1")...)
			f.options.Roles = mode
			f.reconcile()
			f.want(what, ClusterRole, ListCSRsClusterRole)
			change.do(f)
			f.reconcile()
			f.want(what)
			change.undo(f)
			f.reconcile()
			if mode == Shared {
				f.want(what+", and back", ClusterRole, ListCSRsClusterRole)
			} else {
				f.want(what + ", and back: it is not for this mode to bind it")
			}
		}
	}
}

// The role is not bound if hub-apiserver may be too old to limit agents. An existing binding stays while hub-apiserver is away for a while, unless
// it was changed.
func TestReconcile_BindsNoRoleBeforeAgentsAreRestricted(t *testing.T) {
	for what, held := range map[string]*apiregistrationv1.APIService{
		"the manifests are older":     nil,
		"hub-apiserver is older":      holding(apiregistrationv1.ConditionFalse),
		"nobody has asked yet":        service("v1alpha1", hubAPIServer()),
		"nobody knows how it answers": holding(apiregistrationv1.ConditionUnknown),
	} {
		f := newFixture(t)
		replace := func(by *apiregistrationv1.APIService) {
			if err := client.IgnoreNotFound(f.Delete(t.Context(), service("v1alpha1", nil))); err != nil {
				t.Fatal(err)
			}
			if by != nil {
				f.add(by.DeepCopy())
			}
		}
		replace(held)
		f.reconcile()
		f.want(what)
		replace(holding(apiregistrationv1.ConditionTrue))
		f.reconcile()
		f.want(what+", and no longer", ClusterRole)
		replace(held)
		f.reconcile()
		f.want(what+" again", ClusterRole)
		binding := &rbacv1.ClusterRoleBinding{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: ClusterRole}, binding); err != nil {
			t.Fatal(err)
		}
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"})
		if err := f.Update(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		f.reconcile()
		f.want(what + ", and the binding was changed")
	}
}

// Another reconciliation, as after a restart, writes nothing.
func TestReconcile_NoRedundantWrites(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	deletions := 0
	r := &Reconciler{Options: f.options, live: f.Client, client: interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			deletions++
			return nil
		},
	})}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || deletions > 0 {
		t.Errorf("%v, %d deletions", err, deletions)
	}
}

func TestReconcile_FollowsFlags(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	f.want("without the list", ClusterRole)
	f.options.ListCSRs = true
	f.reconcile()
	f.want("with the list", ClusterRole, ListCSRsClusterRole)
	before := f.writes
	f.reconcile()
	if f.writes != before {
		t.Error("what is there is written again")
	}
	f.options.ListCSRs = false
	f.reconcile()
	f.want("without it again", ClusterRole)
	f.options.Service = "blue/hub-apiserver"
	f.reconcile()
	f.want("a hub of other names")
}

// Changes of the binding by other clients are reverted: another role, more subjects, or no label, without which it is in no cache.
func TestReconcile_RepairsBinding(t *testing.T) {
	for what, spoil := range map[string]func(*rbacv1.ClusterRoleBinding){
		"another role": func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "cluster-admin" },
		"all users": func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"})
		},
		"one group": func(b *rbacv1.ClusterRoleBinding) { b.Subjects = b.Subjects[:1] },
		"no label":  func(b *rbacv1.ClusterRoleBinding) { b.Labels = nil },
	} {
		f := newFixture(t)
		f.reconcile()
		binding := &rbacv1.ClusterRoleBinding{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: ClusterRole}, binding); err != nil {
			t.Fatal(err)
		}
		f.remove(binding)
		binding.ResourceVersion, binding.ManagedFields = "", nil
		spoil(binding)
		f.add(binding)
		f.reconcile()
		f.want(what, ClusterRole)
	}
}

// accepted returns a cluster and its record.
func accepted(name string) []client.Object {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	kept := record.New(name)
	record.Record{Driver: "csr"}.Write(kept)
	return []client.Object{cluster, kept}
}

// own returns the role and the binding of a cluster.
func own(name string, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Name: registration.ClusterRole(name)}
	return []client.Object{&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: roleRef(meta.Name)}}
}

// The shared role stays until all accepted clusters have their own. Clusters that are not accepted, or were never granted anything, need none.
func TestReconcile_RetainsSharedRoleUntilMigrated(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	f.options.Roles = PerCluster
	f.add(slices.Concat(accepted("c1"), accepted("c2"), own("c1", Rules("c1")))...)
	denied, never := accepted("c3"), accepted("c4")
	denied[0].(*clusterv1.ManagedCluster).Spec.HubAcceptsClient = false
	f.add(denied...)
	f.add(never[0])
	waits := func(what string) {
		t.Helper()
		if result := f.reconcile(); result.RequeueAfter != ownInterval {
			t.Errorf("%s: %v", what, result)
		}
		f.want(what, ClusterRole)
	}
	waits("nothing of c2")
	few := own("c2", Rules("c2")[:1])
	f.add(few[0])
	waits("no binding of c2")
	f.add(few[1])
	waits("few rules of c2")
	f.remove(few[0])
	f.add(own("c2", Rules("c2"))[0])
	if result := f.reconcile(); result.RequeueAfter != 0 {
		t.Errorf("it goes on to look: %v", result)
	}
	f.want("all have their own")
	f.reconcile()
	f.want("and later")
}

// The shared roles are not in force if they give agents less than a role of their own would, or if only the cache has them.
func TestInForce(t *testing.T) {
	for what, spoil := range map[string]func(f *fixture){
		"no binding": func(f *fixture) {
			f.remove(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ClusterRole}})
		},
		"no list": func(f *fixture) {
			f.remove(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ListCSRsClusterRole}})
		},
		"no role": func(f *fixture) { f.remove(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ClusterRole}}) },
		"few rules": func(f *fixture) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ClusterRole}}
			f.remove(role)
			role.ResourceVersion, role.Rules = "", Rules("")[1:]
			f.add(role)
		},
		"one group": func(f *fixture) {
			binding := &rbacv1.ClusterRoleBinding{}
			if err := f.Get(f.Context(), client.ObjectKey{Name: ClusterRole}, binding); err != nil {
				f.Fatal(err)
			}
			binding.Subjects = binding.Subjects[:1]
			if err := f.Update(f.Context(), binding); err != nil {
				f.Fatal(err)
			}
		},
	} {
		f := newFixture(t)
		f.options.ListCSRs = true
		f.reconcile()
		good := newFixture(t)
		good.options.ListCSRs = true
		good.reconcile()
		if ok, err := f.options.InForce(t.Context(), f, f); !ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
		spoil(f)
		if ok, err := f.options.InForce(t.Context(), good, f); ok || err != nil {
			t.Errorf("%s: %t, %v", what, ok, err)
		}
	}
	// A stale cache is not enough.
	f := newFixture(t)
	f.reconcile()
	if ok, err := f.options.InForce(t.Context(), newFixture(t), f); ok || err != nil {
		t.Errorf("not in the cache: %t, %v", ok, err)
	}
}
