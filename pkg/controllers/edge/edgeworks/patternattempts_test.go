// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
)

const database = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: elsewhere}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: elsewhere}
`

// The manifests of the work of tryingPattern, with a namespace before them.
const (
	webDeployment = 1 + iota
	webBinding
	webRole
	dbSet
	dbService
)

// tryingPattern returns a fixture with a pattern with the services web and db, each in the versions 2.0.0 and 1.0.0. The first has this priority,
// and is placed.
func tryingPattern(t *testing.T, priority edgev1alpha1.Priority) *fixture {
	f := newFixture(t)
	f.pattern = true
	f.Service("shop", "web", "2.0.0", strings.Replace(manifest, "image: web", "image: web:2", 1), nil)
	f.Service("shop", "db", "1.0.0", database, nil)
	f.Service("shop", "db", "2.0.0", strings.Replace(database, "kind: StatefulSet\n", "kind: StatefulSet\nspec: {replicas: 2}\n", 1), nil)
	priority.PriorityValue = 1
	versions := []edgev1alpha1.ServiceVersion{{Version: "2.0.0", Priority: &priority}, {Version: "1.0.0", Priority: &edgev1alpha1.Priority{PriorityValue: 2}}}
	pattern := &edgev1alpha1.DeploymentPattern{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	origin := edgev1alpha1.PlacementOrigin{Kind: edgev1alpha1.KindDeploymentPattern, Name: "web"}
	p := placementOf("one", "elsewhere")
	p.Name, p.Spec.Origin = edge.PlacementName(edge.PlacementOrigin(origin), "one"), origin
	p.Spec.Services = nil
	for _, service := range []string{"web", "db"} {
		pattern.Spec.Services = append(pattern.Spec.Services, edgev1alpha1.PatternService{ServiceUrl: service, ServiceVersions: versions})
		p.Spec.Services = append(p.Spec.Services, edgev1alpha1.PlacedService{Name: service, Org: "shop", Version: "2.0.0", Arch: "amd64", TargetNamespace: "elsewhere"})
	}
	f.Make(pattern)
	edgetest.Change(f.FakeHub, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(n *edgev1alpha1.EdgeNode) { n.Spec.Pattern = "shop/web" })
	f.Make(p)
	f.state("Delivering Delivering")
	return f
}

// placesOf writes a version of a service into the placement, as the controller of placements does.
func (f *fixture) placesOf(service int, version string) {
	f.Helper()
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[service].Version = version })
}

// fails has the agent report that these manifests are degraded, and that the work is applied and not degraded, as it does while some objects are
// healthy.
func (f *fixture) fails(manifests ...int) {
	f.Helper()
	w := f.work()
	w.Status.ResourceStatus.Manifests = nil
	for i := range w.Spec.Workload.Manifests {
		m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(i), Kind: "Kind", Namespace: "elsewhere", Name: string(rune('a' + i))}}
		c := metav1.Condition{Type: workv1.ManifestDegraded, Status: metav1.ConditionFalse, Reason: "Any", Message: "no pod is ready", ObservedGeneration: w.Generation}
		if slices.Contains(manifests, i) {
			c.Status = metav1.ConditionTrue
		}
		m.Conditions = append(m.Conditions, c)
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, m)
	}
	if err := f.Status().Update(f.Context(), w); err != nil {
		f.Fatal(err)
	}
	progressing := "Progressing=False"
	if len(manifests) > 0 {
		progressing = "Progressing=True"
	}
	f.say("Applied=True", "Available=True", progressing, "Degraded=False")
}

// The service that fails falls back; the other one stays as it is, and its objects stay in the work.
func TestPatternAttempts_FailingServiceFallsBack(t *testing.T) {
	f := tryingPattern(t, edgev1alpha1.Priority{})
	f.fails(dbSet)
	f.state("Failed Degraded")
	f.pass(failsFor)
	f.attempts("db 2.0.0 GivenUp 1")
	// A new process knows it, and writes nothing else until the placement has the other version.
	f.restart()
	f.attempts("db 2.0.0 GivenUp 1")
	f.placesOf(1, "1.0.0")
	f.state("Delivering Delivering")
	f.fails(webDeployment)
	f.state("Failed Degraded")
	f.pass(failsFor)
	f.attempts("db 2.0.0 GivenUp 1, web 2.0.0 GivenUp 1")
	f.placesOf(0, "1.0.0")
	f.state("Delivering Delivering")
	f.fails()
	f.state("Running Running")
	f.attempts("db 2.0.0 GivenUp 1, web 2.0.0 GivenUp 1, web 1.0.0 Verified 0, db 1.0.0 Verified 0")
	if got := f.placement().Status.Message; !strings.Contains(got, "version 2.0.0 of service db is not retried after 1 failures: Kind elsewhere/e: no pod is ready") {
		t.Errorf("the message is %q", got)
	}
}

// A service must fail for a minute by itself: the minute of another one does not count.
func TestPatternAttempts_EachServiceHasOwnTimer(t *testing.T) {
	f := tryingPattern(t, edgev1alpha1.Priority{})
	f.fails(dbSet)
	f.settle()
	f.clock.SetTime(f.clock.Now().Add(50 * time.Second))
	f.fails(dbSet, webDeployment)
	f.pass(10 * time.Second)
	f.attempts("db 2.0.0 GivenUp 1")
	f.placesOf(1, "1.0.0")
	f.state("Delivering Delivering")
	f.fails(webDeployment, dbSet)
	f.settle()
	f.clock.SetTime(f.clock.Now().Add(50 * time.Second))
	// It has recovered, and fails again.
	f.fails(dbSet)
	f.settle()
	f.fails(dbSet, webDeployment)
	f.pass(10 * time.Second)
	f.attempts("db 2.0.0 GivenUp 1, db 1.0.0  1")
	f.pass(50 * time.Second)
	f.attempts("db 2.0.0 GivenUp 1, web 2.0.0 GivenUp 1, db 1.0.0  1")
}

// The objects of the service that fails are removed before it is tried again, and those of the other service are not.
func TestPatternAttempts_OnlyFailingServiceIsRemoved(t *testing.T) {
	f := tryingPattern(t, edgev1alpha1.Priority{Retries: 1})
	all := objectsOf(t, f.work())
	f.fails(webDeployment)
	f.pass(failsFor)
	f.attempts("web 2.0.0 Retrying 1")
	f.state("Failed Degraded")
	uid := f.work().UID
	f.pass(firstRetry)
	f.attempts("web 2.0.0 Removing 1")
	f.state("Pending Retrying")
	// The namespace stays.
	if got := objectsOf(t, f.work()); !slices.Equal(got, []string{"Namespace /elsewhere", "Service elsewhere/db", "StatefulSet elsewhere/db"}) {
		t.Fatalf("the work has %v", got)
	}
	// A new process continues.
	f.restart()
	f.attempts("web 2.0.0 Removing 1")
	f.fails()
	f.attempts("web 2.0.0 Retrying 1")
	f.state("Delivering Delivering")
	if got := objectsOf(t, f.work()); !slices.Equal(got, all) || f.work().UID != uid {
		t.Fatalf("the work has %v, want %v", got, all)
	}
	f.fails(webDeployment)
	f.pass(failsFor)
	f.attempts("web 2.0.0 GivenUp 2")
}

// All services that fail are tried again, one after the other: a work has at least one object.
func TestPatternAttempts_AllServicesFail(t *testing.T) {
	f := tryingPattern(t, edgev1alpha1.Priority{Retries: 1})
	f.fails(webDeployment, dbSet)
	f.pass(failsFor)
	f.attempts("web 2.0.0 Retrying 1, db 2.0.0 Retrying 1")
	f.pass(firstRetry)
	f.attempts("web 2.0.0 Removing 1, db 2.0.0 Retrying 1")
	f.fails(1)
	f.attempts("web 2.0.0 Retrying 1, db 2.0.0 Retrying 1")
	f.fails(webDeployment, dbSet)
	f.attempts("web 2.0.0 Retrying 1, db 2.0.0 Removing 1")
}

// Reports of an agent about manifests of no service count for no service, whatever the numbers and generations.
func TestAttack_FailuresOfUnknownService(t *testing.T) {
	for name, forge := range map[string]func(*workv1.ManifestWork){
		"the namespace":      func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests[0].ResourceMeta.Ordinal = 0 },
		"a negative number":  func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests[0].ResourceMeta.Ordinal = -1 << 31 },
		"another generation": func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests[0].Conditions[0].ObservedGeneration-- },
		"no positions":       func(w *workv1.ManifestWork) { w.Annotations[beginsAnnotation] = "x" },
		"too few positions":  func(w *workv1.ManifestWork) { w.Annotations[beginsAnnotation] = "[0]" },
	} {
		t.Run(name, func(t *testing.T) {
			f := tryingPattern(t, edgev1alpha1.Priority{})
			w := f.work()
			w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{ResourceMeta: workv1.ManifestResourceMeta{Ordinal: webDeployment},
				Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, ObservedGeneration: w.Generation}}}}
			forge(w)
			if err := f.Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if err := f.Status().Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			f.say("Applied=False")
			f.pass(0)
			f.state("Failed NotApplied")
			f.attempts("")
		})
	}
}

// tooLarge has the server refuse works with this text for their size.
func (f *fixture) tooLarge(text string) {
	if err := f.Delete(f.Context(), f.work()); err != nil {
		f.Fatal(err)
	}
	f.Refuse = func(_ string, obj client.Object) error {
		if w, is := obj.(*workv1.ManifestWork); is && slices.ContainsFunc(w.Spec.Workload.Manifests, func(m workv1.Manifest) bool { return strings.Contains(string(m.Raw), text) }) {
			return errors.New("more than --max-manifests-bytes")
		}
		return nil
	}
}

// A version that is too large for a work is given up at once, and stays if there is no other.
func TestAttempts_OversizedVersion(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{Retries: 3})
	f.tooLarge("web:2")
	f.attempts("2.0.0 GivenUp 1")
	f.places("1.0.0")
	f.state("Delivering Delivering")
	if got := f.placement().Status.Message; !strings.Contains(got, "version 2.0.0 is not retried after 1 failures: its objects exceed the maximum size of a work") {
		t.Errorf("the message is %q", got)
	}

	f = trying(t, edgev1alpha1.Priority{Retries: 3})
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ServiceVersions[1].Version = "3.0.0" })
	f.tooLarge("web:2")
	f.state("Failed TooLarge")
	f.attempts("2.0.0  1")
	// Another reconciliation counts no failure.
	f.pass(late)
	f.attempts("2.0.0  1")
	f.Service("shop", "web", "3.0.0", manifest, nil)
	f.attempts("2.0.0 GivenUp 1")

	// In a pattern, the service with the largest objects is given up.
	f = tryingPattern(t, edgev1alpha1.Priority{Retries: 3})
	f.tooLarge("StatefulSet")
	f.attempts("web 2.0.0 GivenUp 1")
}

// So is a version whose manifests cannot be rewritten, or that lacks a value.
func TestAttempts_UndeliverableVersion(t *testing.T) {
	color, missing := "red", edgev1alpha1.Variable{Name: "SIZE", Type: "string"}
	for reason, test := range map[string]struct {
		manifest string
		input    edgev1alpha1.Variable
		message  string
	}{
		"InputMissing": {database, missing, "variables of service db have no value and no default"},
		"ArchiveNotDeliverable": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db, namespace: elsewhere}\nspec: {template: {spec: {containers: 1}}}\n",
			edgev1alpha1.Variable{Name: "COLOR", Type: "string", DefaultValue: &color}, "Deployment db: .spec.template.spec.containers"},
	} {
		t.Run(reason, func(t *testing.T) {
			f := tryingPattern(t, edgev1alpha1.Priority{Retries: 3})
			f.Service("shop", "db", "3.0.0", test.manifest, func(s *edgev1alpha1.EdgeService) { s.Spec.UserInput = []edgev1alpha1.Variable{test.input} })
			pattern := &edgev1alpha1.DeploymentPattern{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			edgetest.Change(f.FakeHub, pattern, func(p *edgev1alpha1.DeploymentPattern) { p.Spec.Services[1].ServiceVersions[0].Version = "3.0.0" })
			f.placesOf(1, "3.0.0")
			f.attempts("db 3.0.0 GivenUp 1")
			if got := f.placement().Status.Attempts[0].Message; !strings.Contains(got, test.message) {
				t.Errorf("the message is %q", got)
			}
			f.placesOf(1, "1.0.0")
			f.state("Delivering Delivering")
		})
	}
}

// One object that fails is enough, whatever the others do: agents report a work as degraded only if all its objects are.
func TestAttempts_OneObjectFails(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{})
	f.fails(webDeployment)
	f.state("Failed Degraded")
	if got := f.placement().Status.Message; got != "objects do not become ready: Kind elsewhere/b: no pod is ready" {
		t.Errorf("the message is %q", got)
	}
	f.pass(failsFor)
	f.attempts("2.0.0 GivenUp 1")
}
