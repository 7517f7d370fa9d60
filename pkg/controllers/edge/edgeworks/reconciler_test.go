// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
)

func TestWork_ObjectsInTargetNamespace(t *testing.T) {
	f := newFixture(t)
	w := f.work()
	if got := objectsOf(t, w); !slices.Equal(got, []string{"ClusterRole /web", "Deployment blue/web", "Namespace /blue", "RoleBinding blue/web"}) {
		t.Errorf("the work has %v", got)
	}
	for _, m := range w.Spec.Workload.Manifests {
		if strings.Contains(string(m.Raw), "elsewhere") {
			t.Errorf("a namespace of the archive is left in %s", m.Raw)
		}
	}
	if d := w.Spec.DeleteOption; d.PropagationPolicy != workv1.DeletePropagationPolicyTypeSelectivelyOrphan || len(d.SelectivelyOrphan.OrphaningRules) != 1 ||
		d.SelectivelyOrphan.OrphaningRules[0] != (workv1.OrphaningRule{Resource: "namespaces", Name: "blue"}) {
		t.Errorf("the namespace does not stay: %+v", d)
	}
	if c := w.Spec.ManifestConfigs[0]; c.ResourceIdentifier.Name != "blue" || c.UpdateStrategy.Type != workv1.UpdateStrategyTypeCreateOnly {
		t.Errorf("a namespace that is there could be changed: %+v", c)
	}
	if w.Labels[edgev1alpha1.NodeLabel] != "one" || w.Labels[edgev1alpha1.PolicyLabel] != "web" {
		t.Errorf("labels are %v", w.Labels)
	}
	// A new process writes nothing that is up to date, and reads no archive.
	f.Writes, f.reads = nil, 0
	f.restart()
	f.settle()
	if len(f.Writes) > 0 || f.reads > 0 {
		t.Errorf("a new process has written %v, and read %d times", f.Writes, f.reads)
	}
}

// The default target namespace is not that of the agent: it is created with the first service.
func TestWork_CreatesDefaultNamespace(t *testing.T) {
	f := newFixture(t)
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(n *edgev1alpha1.EdgeNode) { n.Status.Namespace = "blue" })
	f.state("Delivering Delivering")
	if got := objectsOf(t, f.work()); !slices.Contains(got, "Namespace /blue") {
		t.Errorf("the work has %q", got)
	}
}

// An agent with one namespace gets only what it can create: no Namespace, and no other cluster-scoped objects.
func TestWork_NamespaceScopedAgent(t *testing.T) {
	f := newFixture(t)
	node := &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	edgetest.Change(f.FakeHub, node, func(n *edgev1alpha1.EdgeNode) {
		n.Status.Namespace, *n.Status.NamespaceScoped = "blue", true
		n.Status.ClusterObjects = []edgev1alpha1.ClusterScopedObject{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}}
	})
	f.settle()
	if got := objectsOf(t, f.work()); !slices.Equal(got, []string{"Deployment blue/web", "RoleBinding blue/web"}) {
		t.Errorf("the work has %v", got)
	}
}

// The state follows the cluster's report for the current generation of the work.
func TestState_FollowsCluster(t *testing.T) {
	f := newFixture(t)
	f.state("Delivering Delivering")
	f.say("Applied=True", "Available=True")
	f.state("Delivering Delivering")
	f.say("Progressing=True")
	f.state("Delivering Delivering")
	f.say("Progressing=False", "Degraded=False")
	f.state("Running Running")
	f.say("Degraded=True")
	f.state("Failed Degraded")
	f.say("Applied=False", "Degraded=False")
	f.state("Failed NotApplied")
	f.say("Applied=True")
	f.state("Running Running")
	// Reports for the previous spec do not count.
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "green" })
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "green" })
	f.state("Delivering Delivering")
	if got := objectsOf(t, f.work()); !slices.Equal(got, []string{"ClusterRole /web", "Deployment green/web", "Namespace /green", "RoleBinding green/web"}) {
		t.Errorf("the work has %v", got)
	}
	if n := len(f.works()); n != 1 {
		t.Errorf("there are %d works: what is not in the one any more is what its agent removes", n)
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

// No placement is trusted: what the rules would not decide now is not written, whichever user has written the placement.
func TestAttack_ForgedPlacement(t *testing.T) {
	for name, forge := range map[string]func(*fixture){
		"another namespace": func(f *fixture) {
			edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "kube-system" })
		},
		"no policy": func(f *fixture) {
			if err := f.Delete(f.Context(), f.policy()); err != nil {
				f.Fatal(err)
			}
		},
		"no binding": func(f *fixture) {
			if err := f.Delete(f.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "set"}}); err != nil {
				f.Fatal(err)
			}
		},
		"not accepted": func(f *fixture) {
			edgetest.Change(f.FakeHub, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
		},
		"a node of another cluster": func(f *fixture) {
			edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(n *edgev1alpha1.EdgeNode) { n.OwnerReferences[0].UID = "former" })
		},
		"not satisfied": func(f *fixture) {
			edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Constraints = []string{"purpose == retail"} })
		},
		"a version that is withdrawn": func(f *fixture) {
			if err := f.Delete(f.Context(), &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web--1.0.0--amd64"}}); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			before := f.work()
			forge(f)
			// Changes by other clients, which would have the work written.
			edgetest.Change(f.FakeHub, f.work(), func(w *workv1.ManifestWork) { w.Annotations[sourceAnnotation] = "other" })
			edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Labels["any"] = "change" })
			f.state("Pending NotDecided")
			if after := f.work(); !slices.Equal(objectsOf(t, before), objectsOf(t, after)) || after.Annotations[sourceAnnotation] != "other" {
				t.Error("the work was written")
			}
			// No new work is created, either.
			if err := f.Delete(t.Context(), f.work()); err != nil {
				t.Fatal(err)
			}
			f.settle()
			if n := len(f.works()); n != 0 {
				t.Errorf("%d works were made", n)
			}
		})
	}
}

// A work of a user that has the name is never changed, neither when the placement is created nor when it is deleted.
func TestAttack_WorkOfOtherOwner(t *testing.T) {
	f := newFixture(t)
	foreign := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: f.work().Name}}
	if err := f.Delete(t.Context(), f.work()); err != nil {
		t.Fatal(err)
	}
	f.Make(foreign)
	f.state("Failed WorkNameTaken")
	if err := f.Delete(t.Context(), f.placement()); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if works := f.works(); len(works) != 1 || works[0].UID != foreign.UID || works[0].Generation != 1 || len(works[0].Labels) > 0 {
		t.Errorf("the works are %+v", works)
	}
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(placementOf("one", "")), &edgev1alpha1.EdgePlacement{}); !apierrors.IsNotFound(err) {
		t.Errorf("the placement does not go: %v", err)
	}
}

// A placement exists until its work is gone, and no work exists without its placement.
func TestFinalize_DeletesWorkFirst(t *testing.T) {
	f := newFixture(t)
	edgetest.Change(f.FakeHub, f.work(), func(w *workv1.ManifestWork) { w.Finalizers = []string{"agent"} })
	if err := f.Delete(t.Context(), f.placement()); err != nil {
		t.Fatal(err)
	}
	f.state("Removing Removing")
	w := f.work()
	w.Finalizers = nil
	if err := f.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(placementOf("one", "")), &edgev1alpha1.EdgePlacement{}); !apierrors.IsNotFound(err) {
		t.Errorf("the placement does not go: %v", err)
	}

	f = newFixture(t)
	p := f.placement()
	p.Finalizers = nil
	if err := errors.Join(f.Update(t.Context(), p), f.Delete(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if n := len(f.works()); n != 0 {
		t.Errorf("%d works are left of a placement whose finalizer others have taken away", n)
	}
}

// A refusal is reported, and what was delivered before stays.
func TestState_OfRefusal(t *testing.T) {
	f := newFixture(t)
	f.Refuse = func(verb string, obj client.Object) error {
		if _, is := obj.(*workv1.ManifestWork); is && verb == "patch" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ManifestWork"}, "web", nil)
		}
		return nil
	}
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "green" })
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "green" })
	f.state("Failed WorkRefused")
	if s := f.placement().Status; s.Work != f.work().Name {
		t.Errorf("the work that is still there is not named: %+v", s)
	}
}

// In a namespace that is being deleted nothing can be created. The hub creates the namespace again, so the write is retried soon.
func TestState_OfTerminatingNamespace(t *testing.T) {
	f := newFixture(t)
	f.Refuse = func(verb string, obj client.Object) error {
		if _, is := obj.(*workv1.ManifestWork); !is || verb != "patch" {
			return nil
		}
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "manifestworks"}, "web", nil)
		refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return refusal
	}
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "green" })
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "green" })
	f.state("Pending NoClusterNamespace")
}

// Variables are delivered as in Open Horizon: a ConfigMap, and its name in the containers of Deployments. A change of them alone is delivered, too.
func TestWork_Variables(t *testing.T) {
	f := newFixture(t)
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web--1.0.0--amd64"}},
		func(s *edgev1alpha1.EdgeService) { s.Spec.UserInput = []edgev1alpha1.Variable{{Name: "COLOR"}} })
	f.state("Failed InputMissing")
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) {
		p.Spec.UserInput = []edgev1alpha1.ServiceInput{{ServiceUrl: "web", Inputs: []edgev1alpha1.Input{{Name: "COLOR", Value: edgev1alpha1.Value{Type: edgev1alpha1.ValueString, String: "red"}}}}}
	})
	f.state("Delivering Delivering")
	var all string
	for _, m := range f.work().Spec.Workload.Manifests {
		all += string(m.Raw)
	}
	if !strings.Contains(all, `"data":{"COLOR":"red"}`) || strings.Count(all, "hzn-env-vars-") != 2 || !strings.Contains(all, `"env":[{"name":"HZN_ENV_VARS"`) {
		t.Errorf("the variables are not there: %s", all)
	}
}

// Changes of the work by other clients are reverted.
func TestWork_RevertsChangesOfOthers(t *testing.T) {
	f := newFixture(t)
	edgetest.Change(f.FakeHub, f.work(), func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1] })
	f.settle()
	if got := objectsOf(t, f.work()); len(got) != 4 {
		t.Errorf("the work has %v", got)
	}
}
