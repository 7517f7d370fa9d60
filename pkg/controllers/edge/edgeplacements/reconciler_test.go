// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
)

const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"

type fixture struct {
	*edgetest.FakeHub
	*testing.T
	clock   *clocktesting.FakePassiveClock
	process *edgetest.Process
	// events are the events of the controller.
	events *events.FakeRecorder
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{FakeHub: edgetest.New(t), T: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_900_000_000, 0)), events: events.NewFakeRecorder(10_000)}
	f.restart()
	return f
}

// restart starts a new process.
func (f *fixture) restart() {
	r := newReconciler(f.FakeHub, f.events, f.clock)
	var watches []edgetest.Watch
	for _, w := range r.watches() {
		watches = append(watches, edgetest.Watch{Kind: w.kind, Handler: w.handler})
	}
	f.process = f.Start(r, watches)
	r.queue = f.process.Queue
}

// settle runs the process until nothing is left to do, and removes the finalizers of placements as the controller of works does.
func (f *fixture) settle() {
	f.Helper()
	for again := true; again; {
		edgetest.Settle(f.process)
		again = false
		for _, p := range f.placements() {
			if !p.DeletionTimestamp.IsZero() {
				p.Finalizers = nil
				if err := f.Update(f.Context(), &p); err != nil {
					f.Fatal(err)
				}
				again = true
			}
		}
	}
}

func (f *fixture) placements() []edgev1alpha1.EdgePlacement {
	f.Helper()
	list := &edgev1alpha1.EdgePlacementList{}
	if err := f.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// expect checks which placements exist, as "node version namespace".
func (f *fixture) expect(want ...string) {
	f.Helper()
	f.settle()
	got := []string{}
	for _, p := range f.placements() {
		if _, ours := PairOf(&p); !ours || !slices.Equal(p.Finalizers, []string{edgev1alpha1.PlacementFinalizer}) || p.Labels[edgev1alpha1.NodeLabel] != p.Spec.Node {
			f.Errorf("%s has the finalizers %v and the labels %v", p.Name, p.Finalizers, p.Labels)
		}
		for _, s := range p.Spec.Services {
			got = append(got, fmt.Sprintf("%s %s %s", p.Spec.Node, s.Version, s.TargetNamespace))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.Fatalf("placed %q, want %q", got, want)
	}
}

func (f *fixture) policy() *edgev1alpha1.DeploymentPolicy {
	f.Helper()
	p := &edgev1alpha1.DeploymentPolicy{}
	if err := f.Get(f.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, p); err != nil {
		f.Fatal(err)
	}
	return p
}

// conditions checks the conditions of the policy, as "Valid=AsExpected …".
func (f *fixture) conditions(want string) {
	f.Helper()
	var got []string
	for _, c := range f.policy().Status.Conditions {
		got = append(got, c.Type+"="+c.Reason)
	}
	if strings.Join(got, " ") != want {
		f.Errorf("conditions are %v, want %s", got, want)
	}
}

func (f *fixture) change(do func(*edgev1alpha1.DeploymentPolicy)) {
	f.Helper()
	edgetest.Change(f.FakeHub, f.policy(), do)
}

// world has two nodes of the bound set, one of another, and a policy for version 2 and otherwise 1, of which 1 exists.
func world(t *testing.T) *fixture {
	f := newFixture(t)
	f.Bind("shop", "blue")
	f.Node("one", "blue", nil)
	f.Node("two", "blue", func(n *edgev1alpha1.EdgeNode) { n.Status.Namespace = "other" })
	f.Node("far", "red", nil)
	f.Service("shop", "web", "1.0.0", manifest, nil)
	f.Make(edgetest.Policy("shop", "web", "web", "2.0.0", "1.0.0"))
	f.expect("one 1.0.0 agent", "two 1.0.0 other")
	return f
}

func TestPlacements_FollowChanges(t *testing.T) {
	f := world(t)
	if s := f.policy().Status; s.Nodes != (edgev1alpha1.NodeCounts{Reached: 2, Selected: 2, Placed: 2}) || s.ObservedGeneration != 1 {
		t.Errorf("the status is %+v", s)
	}
	f.conditions("Valid=AsExpected Placed=AsExpected Running=Progressing")

	f.Service("shop", "web", "2.0.0", manifest, nil)
	f.expect("one 2.0.0 agent", "two 2.0.0 other")
	s := &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web--2.0.0--amd64"}}
	if err := f.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	f.expect("one 1.0.0 agent", "two 1.0.0 other")

	f.change(func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "other" })
	f.expect("two 1.0.0 other")
	// The reason: the first version does not exist.
	if s := f.policy().Status; len(s.Excluded) != 1 || s.Excluded[0] != (edgev1alpha1.ExcludedNodes{Reason: "VersionMissing", Nodes: 1}) {
		t.Errorf("the status is %+v", s)
	}
	// As a cluster-scoped node, it gets the namespace of the policy, and then a different one.
	one := &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	edgetest.Change(f.FakeHub, one, func(n *edgev1alpha1.EdgeNode) { n.Status.NamespaceScoped = new(bool) })
	f.expect("one 1.0.0 other", "two 1.0.0 other")
	f.change(func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "third" })
	f.expect("one 1.0.0 third")

	f.change(func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Constraints = []string{"purpose == retail"} })
	f.expect()
	f.conditions("Valid=AsExpected Placed=NoNodeSelected Running=NoNodeSelected")
	edgetest.Change(f.FakeHub, one, func(n *edgev1alpha1.EdgeNode) {
		n.Spec.Properties = []edgev1alpha1.Property{{Name: "purpose", Value: edgev1alpha1.Value{Type: edgev1alpha1.ValueString, String: "retail"}}}
	})
	f.expect("one 1.0.0 third")
	if err := f.Delete(t.Context(), f.policy()); err != nil {
		t.Fatal(err)
	}
	f.expect()
}

func TestPlacements_DeletedWithClusterSetAndBinding(t *testing.T) {
	f := world(t)
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	edgetest.Change(f.FakeHub, c, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	f.expect("two 1.0.0 other")
	edgetest.Change(f.FakeHub, c, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	f.expect("one 1.0.0 agent", "two 1.0.0 other")
	edgetest.Change(f.FakeHub, c, func(c *clusterv1.ManagedCluster) { c.Labels["set"] = "red" })
	f.expect("two 1.0.0 other")
	if err := f.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "blue"}}); err != nil {
		t.Fatal(err)
	}
	f.expect()
	f.conditions("Valid=AsExpected Placed=NoBoundSet Running=NoNodeSelected")
}

// The node of an earlier cluster of the name gets nothing, nor does one without an owner.
func TestAttack_NodeOfOtherCluster(t *testing.T) {
	f := world(t)
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	if err := f.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	again := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"set": "blue"}}}
	again.Spec.HubAcceptsClient = true
	f.Make(again)
	f.expect("two 1.0.0 other")
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "two"}}, func(n *edgev1alpha1.EdgeNode) { n.OwnerReferences = nil })
	f.expect()
}

// No placement is trusted, even if the hub has written it.
func TestAttack_ForgedPlacement(t *testing.T) {
	f := world(t)
	for _, p := range f.placements() {
		if p.Spec.Node == "one" {
			edgetest.Change(f.FakeHub, &p, func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "kube-system" })
		}
	}
	forged := f.placements()[0].DeepCopy()
	forged.ResourceVersion, forged.Spec.Node = "", "far"
	forged.Name = "any"
	f.Make(forged)
	named := forged.DeepCopy()
	named.ResourceVersion = ""
	pair, _ := PairOf(named)
	named.Name = placementName(pair)
	f.Make(named)
	f.expect("one 1.0.0 agent", "two 1.0.0 other")
	// A placement without a policy when a process starts.
	f.restart()
	if err := f.Delete(t.Context(), f.policy()); err != nil {
		t.Fatal(err)
	}
	f.expect()
}

// A service of another namespace needs the permission of the author when it is placed; a placed service stays.
func TestAttack_ServiceOfOtherNamespace(t *testing.T) {
	f := newFixture(t)
	f.Bind("shop", "blue")
	f.Node("one", "blue", nil)
	f.Service("tools", "web", "1.0.0", manifest, nil)
	p := edgetest.Policy("shop", "web", "web", "1.0.0")
	p.Spec.Service.Org = "tools"
	f.Make(p)
	f.expect()
	f.conditions("Valid=ServiceNotAllowed Placed=Progressing Running=NoNodeSelected")

	may := "nobody"
	f.Allows = func(s *authorizationv1.SubjectAccessReviewSpec) bool {
		a := s.ResourceAttributes
		return s.User == may && a.Verb == "get" && a.Resource == "edgeservices" && a.Group == edgev1alpha1.GroupName && a.Namespace == "tools" && a.Name == "web--1.0.0--amd64"
	}
	f.change(func(p *edgev1alpha1.DeploymentPolicy) {
		p.Annotations = map[string]string{edgev1alpha1.AuthorAnnotation: `{"username":"eve"}`}
	})
	f.expect()
	may = "eve"
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.change(func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Label = "again" })
	f.restart()
	f.expect("one 1.0.0 agent")
	f.conditions("Valid=AsExpected Placed=AsExpected Running=Progressing")
	may = "nobody"
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.change(func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Label = "and again" })
	f.expect("one 1.0.0 agent")
	f.Node("two", "blue", nil)
	f.expect("one 1.0.0 agent")
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "web--1.0.0--amd64"}},
		func(s *edgev1alpha1.EdgeService) { s.Spec.Public = true })
	f.restart()
	f.expect("one 1.0.0 agent", "two 1.0.0 agent")
}

// The status counts states, and is not written if it is up to date.
func TestStatus_CountsWithoutRedundantWrites(t *testing.T) {
	f := world(t)
	for i, p := range f.placements() {
		p.Status.State = []edgev1alpha1.PlacementState{edgev1alpha1.PlacementRunning, edgev1alpha1.PlacementFailed}[i]
		if err := f.Status().Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	if n := f.policy().Status.Nodes; n.Running != 1 || n.Failed != 1 {
		t.Errorf("the counts are %+v", n)
	}
	f.conditions("Valid=AsExpected Placed=AsExpected Running=PlacementsFailed")
	before := f.policy()
	f.restart()
	f.settle()
	if after := f.policy(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a new process has written the status again: %+v, %+v", before.Status, after.Status)
	}
	if !meta.IsStatusConditionTrue(before.Status.Conditions, edgev1alpha1.ConditionPlaced) {
		t.Error("all are placed")
	}
	// Many nodes that change at once cause one write of the status.
	for i := range 50 {
		f.Node(fmt.Sprint("more-", i), "blue", nil)
	}
	f.Writes = nil
	f.settle()
	statuses := 0
	for _, write := range f.Writes {
		if strings.HasPrefix(write, "patch status *v1alpha1.DeploymentPolicy") {
			statuses++
		}
	}
	if statuses == 0 || statuses > 3 {
		t.Errorf("the status was written %d times for 50 nodes", statuses)
	}
}

// A node with a pattern gets all services of the pattern, and none of a policy.
func TestPlacements_OfPattern(t *testing.T) {
	f := world(t)
	f.Service("shop", "db", "1.0.0", strings.ReplaceAll(manifest, "web", "db"), nil)
	p := &edgev1alpha1.DeploymentPattern{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	p.Spec.ClusterNamespace = "agent"
	for _, url := range []string{"web", "db"} {
		p.Spec.Services = append(p.Spec.Services, edgev1alpha1.PatternService{ServiceUrl: url, ServiceVersions: []edgev1alpha1.ServiceVersion{{Version: "1.0.0"}}})
	}
	f.Make(p)
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(n *edgev1alpha1.EdgeNode) { n.Spec.Pattern = "shop/all" })
	f.expect("one 1.0.0 agent", "one 1.0.0 agent", "two 1.0.0 other")
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Status.Nodes.Selected != 1 || p.Status.Nodes.Reached != 2 {
		t.Errorf("the status of the pattern is %+v, %v", p.Status, err)
	}
}

// A version that is given up on a node is replaced by the next one there, also by a new process, and returns when it is tried again.
func TestPlace_FallsBackToNextVersion(t *testing.T) {
	f := newFixture(t)
	f.Bind("shop", "set")
	for _, name := range []string{"one", "two"} {
		f.Node(name, "set", nil)
	}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		f.Service("shop", "web", version, manifest, nil)
	}
	f.Make(edgetest.Policy("shop", "web", "web", "2.0.0", "1.0.0"))
	versions := func(one, two string) {
		t.Helper()
		f.settle()
		for _, p := range f.placements() {
			if want := map[string]string{"one": one, "two": two}[p.Spec.Node]; p.Spec.Services[0].Version != want {
				t.Fatalf("node %s has version %s, want %s", p.Spec.Node, p.Spec.Services[0].Version, want)
			}
		}
	}
	versions("2.0.0", "2.0.0")
	try := func(attempts ...edgev1alpha1.VersionAttempt) {
		for _, p := range f.placements() {
			if p.Spec.Node == "one" {
				edgetest.Change(f.FakeHub, &p, func(p *edgev1alpha1.EdgePlacement) { p.Status.Attempts = attempts })
			}
		}
	}
	try(edgev1alpha1.VersionAttempt{Org: "shop", Name: "web", Version: "2.0.0", State: edgev1alpha1.AttemptRetrying, Failures: 1})
	versions("2.0.0", "2.0.0")
	try(edgev1alpha1.VersionAttempt{Org: "shop", Name: "other", Version: "2.0.0", State: edgev1alpha1.AttemptGivenUp, Failures: 2})
	versions("2.0.0", "2.0.0")
	try(edgev1alpha1.VersionAttempt{Org: "shop", Name: "web", Version: "2.0.0", State: edgev1alpha1.AttemptGivenUp, Failures: 2})
	versions("1.0.0", "2.0.0")
	f.restart()
	versions("1.0.0", "2.0.0")
	try()
	versions("2.0.0", "2.0.0")
}
