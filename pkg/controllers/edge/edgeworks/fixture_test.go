// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
)

const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: elsewhere}
spec: {template: {spec: {containers: [{name: web, image: web}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: elsewhere}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
`

// fixture is a hub with the policy web of the namespace shop, which deploys its service to the namespace blue of the cluster-scoped node one.
type fixture struct {
	*edgetest.FakeHub
	*testing.T
	process *edgetest.Process
	clock   *clocktesting.FakePassiveClock
	reads   int
	// pattern reports whether the placement under test belongs to the pattern web, and not to the policy.
	pattern bool
	// gate is the feature gate of the next process.
	gate bool
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{FakeHub: edgetest.New(t, func(b *fake.ClientBuilder) {
		for _, i := range indexes {
			b.WithIndex(i.Kind, i.Field, i.Of)
		}
	}), T: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_900_000_000, 0))}
	f.restart()
	f.Bind("shop", "set")
	f.Node("one", "set", func(n *edgev1alpha1.EdgeNode) { n.Status.NamespaceScoped = new(bool) })
	f.Service("shop", "web", "1.0.0", manifest, nil)
	p := edgetest.Policy("shop", "web", "web", "1.0.0")
	p.Spec.Service.ClusterNamespace = "blue"
	f.Make(p)
	f.place("one", "blue")
	f.settle()
	return f
}

// restart starts a new process, whose cache has what ForCache leaves.
func (f *fixture) restart() {
	cached := interceptor.NewClient(f.FakeHub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if err == nil {
				_, err = manifestworkreplicaset.ForCache(obj)
			}
			return err
		},
	})
	live := interceptor.NewClient(f.FakeHub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			f.reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	r := newReconciler(cached, live, f.clock)
	r.ChecksAgentExecutor = f.gate
	var watched []edgetest.Watch
	for _, w := range watches(r.client) {
		watched = append(watched, edgetest.Watch{Kind: w.kind, Handler: handler.EnqueueRequestsFromMapFunc(w.concerns)})
	}
	f.process = f.Start(r, watched)
}

func (f *fixture) settle() {
	f.Helper()
	edgetest.Settle(f.process)
}

func placementOf(node, namespace string) *edgev1alpha1.EdgePlacement {
	origin := edgev1alpha1.PlacementOrigin{Kind: edgev1alpha1.KindDeploymentPolicy, Name: "web"}
	return &edgev1alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: edge.PlacementName(edge.PlacementOrigin(origin), node), Generation: 2,
		Labels: edgeplacements.Labels(engine.Pair{Key: engine.Key{Namespace: "shop", Name: "web"}, Node: node}), Finalizers: []string{edgev1alpha1.PlacementFinalizer}},
		Spec: edgev1alpha1.EdgePlacementSpec{Node: node, Origin: origin,
			Services: []edgev1alpha1.PlacedService{{Name: "web", Org: "shop", Version: "1.0.0", Arch: "amd64", TargetNamespace: namespace}}}}
}

// place creates the placement that the hub would create.
func (f *fixture) place(node, namespace string) { f.Make(placementOf(node, namespace)) }

func (f *fixture) placement() *edgev1alpha1.EdgePlacement {
	f.Helper()
	p := placementOf("one", "")
	if f.pattern {
		p.Name = edge.PlacementName(edge.PlacementOrigin{Kind: edgev1alpha1.KindDeploymentPattern, Name: "web"}, "one")
	}
	if err := f.Get(f.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *fixture) work() *workv1.ManifestWork {
	f.Helper()
	w := &workv1.ManifestWork{}
	if err := f.Get(f.Context(), types.NamespacedName{Namespace: "one", Name: workName(client.ObjectKeyFromObject(f.placement()))}, w); err != nil {
		f.Fatal(err)
	}
	return w
}

func (f *fixture) works() []workv1.ManifestWork {
	f.Helper()
	list := &workv1.ManifestWorkList{}
	if err := f.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// state checks the state of the placement, as "State Reason".
func (f *fixture) state(want string) {
	f.Helper()
	f.settle()
	p := f.placement()
	if s := p.Status; string(s.State)+" "+s.Reason != want || s.ObservedGeneration != p.Generation {
		f.Fatalf("the placement is %s %s (%s) as of generation %d, want %s as of %d", s.State, s.Reason, s.Message, s.ObservedGeneration, want, p.Generation)
	}
}

// objectsOf returns the objects of a work, as "Kind namespace/name".
func objectsOf(t *testing.T, w *workv1.ManifestWork) []string {
	t.Helper()
	var names []string
	for _, m := range w.Spec.Workload.Manifests {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(m.Raw, &u.Object); err != nil {
			t.Fatal(err)
		}
		names = append(names, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	slices.Sort(names)
	return names
}

// say has the agent of the node report conditions of the work, as "Applied=True".
func (f *fixture) say(conditions ...string) {
	f.Helper()
	w := f.work()
	for _, c := range conditions {
		kind, status, _ := strings.Cut(c, "=")
		found := false
		now := metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "Any", ObservedGeneration: w.Generation, LastTransitionTime: metav1.Unix(1, 0)}
		for i := range w.Status.Conditions {
			if w.Status.Conditions[i].Type == kind {
				w.Status.Conditions[i], found = now, true
			}
		}
		if !found {
			w.Status.Conditions = append(w.Status.Conditions, now)
		}
	}
	if err := f.Status().Update(f.Context(), w); err != nil {
		f.Fatal(err)
	}
}
