// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// wellWork returns a work that is complete, on a cluster without problems.
func wellWork() (WorkFacts, *workv1.ManifestWork) {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", Generation: 2, CreationTimestamp: before(time.Hour)}}
	for _, name := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		setCondition(&w.Status.Conditions, name, metav1.ConditionTrue, "Well", "")
	}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Namespace: "web", Name: "a"}}}
	m := &w.Status.ResourceStatus.Manifests[0]
	for _, name := range []string{workv1.ManifestApplied, workv1.ManifestAvailable} {
		setCondition(&m.Conditions, name, metav1.ConditionTrue, "Well", "")
	}
	taken(w, 2)
	cluster, _, _ := wellCluster()
	return WorkFacts{Cluster: "c1", Name: "web", Now: now, Work: Found(w), OfCluster: OfCluster(cluster)}, w
}

func taken(w *workv1.ManifestWork, generation int64) {
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].ObservedGeneration = generation
	}
}

func TestOfWork(t *testing.T) {
	manifest := func(w *workv1.ManifestWork, name string, status metav1.ConditionStatus, message string) {
		setCondition(&w.Status.ResourceStatus.Manifests[0].Conditions, name, status, "X", message)
	}
	lost, _, lease := wellCluster()
	lease.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
	warned, m, _ := wellCluster()
	setCondition(&m.Status.Conditions, "ClusterCertificateRotated", metav1.ConditionFalse, "X", "refused")
	hidden, _, _ := wellCluster()
	hidden.Cluster = Hidden[*clusterv1.ManagedCluster]("no cluster")
	unheard, _, _ := wellCluster()
	unheard.Lease = Hidden[*coordinationv1.Lease]("no lease")
	for name, test := range map[string]struct {
		change func(*WorkFacts, *workv1.ManifestWork)
		id     ID
		step   string
		says   []string
	}{
		"done":               {},
		"with a warning":     {change: func(f *WorkFacts, _ *workv1.ManifestWork) { f.OfCluster = OfCluster(warned) }},
		"not there":          {func(f *WorkFacts, _ *workv1.ManifestWork) { f.Work = Missing[*workv1.ManifestWork]() }, WorkMissing, "exists", nil},
		"on a lost cluster":  {func(f *WorkFacts, _ *workv1.ManifestWork) { f.OfCluster = OfCluster(lost) }, AgentNotHeard, "cluster", []string{"its status is out of date", "kubectl hub why cluster c1"}},
		"not told":           {func(_ *WorkFacts, w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} }, WorkNotTaken, "taken by agent", []string{"not reported"}},
		"told of an old one": {func(_ *WorkFacts, w *workv1.ManifestWork) { taken(w, 1) }, WorkNotTaken, "taken by agent", []string{"generation 1", "generation 2"}},
		"being deleted": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			w.DeletionTimestamp = new(before(time.Minute))
			setCondition(&w.Status.Conditions, workv1.WorkDeleting, metav1.ConditionTrue, "X", "a is left")
		}, WorkDeleting, "taken by agent", []string{"a is left"}},
		"not applied": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestApplied, metav1.ConditionFalse, "no such kind")
		},
			ManifestNotApplied, "applied", []string{"ConfigMap web/a is not applied: no such kind"}},
		"no namespace": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestApplied, metav1.ConditionFalse, `namespaces "web" not found`)
		}, ManifestNotApplied, "applied", []string{"kubectl create namespace web --context <CONTEXT OF THE CLUSTER>"}},
		"forbidden": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestApplied, metav1.ConditionFalse, `configmaps "a" is forbidden: User "x" cannot create`)
		}, ManifestForbidden, "applied", []string{"grants the right to the agent", "kubectl hub join --works admin"}},
		"forbidden to the executor": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestApplied, metav1.ConditionFalse, `configmaps "a" is forbidden`)
			w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ci", Name: "d"}}}
		}, ManifestForbidden, "applied", []string{"ci:d"}},
		"not applied as a whole": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			setCondition(&w.Status.Conditions, workv1.WorkApplied, metav1.ConditionFalse, "X", "too large")
			taken(w, 2)
		}, ManifestNotApplied, "applied", []string{"too large"}},
		"not available": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestAvailable, metav1.ConditionFalse, "gone")
		},
			ManifestNotAvailable, "available", nil},
		"not known to be available": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			setCondition(&w.Status.Conditions, workv1.WorkAvailable, metav1.ConditionUnknown, "X", "cannot fetch")
			taken(w, 2)
		}, ManifestNotAvailable, "available", []string{"does not know", "cannot fetch"}},
		"degraded": {func(_ *WorkFacts, w *workv1.ManifestWork) {
			manifest(w, workv1.ManifestDegraded, metav1.ConditionTrue, "crashes")
		},
			ManifestDegraded, "not degraded", []string{"crashes"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, w := wellWork()
			if test.change != nil {
				test.change(&facts, w)
			}
			checkAnswer(t, OfWork(facts), test.id, test.step, test.says...)
		})
	}
	for name, change := range map[string]func(*WorkFacts){
		"the work":        func(f *WorkFacts) { f.Work = Hidden[*workv1.ManifestWork]("no work") },
		"the cluster":     func(f *WorkFacts) { f.OfCluster = OfCluster(hidden) },
		"a look at it":    func(f *WorkFacts) { f.OfCluster = Answer{} },
		"the lease":       func(f *WorkFacts) { f.OfCluster = OfCluster(unheard) },
		"anything at all": func(f *WorkFacts) { *f = WorkFacts{} },
	} {
		facts, _ := wellWork()
		change(&facts)
		if a := OfWork(facts); !a.IsBlind() || len(a.Unseen) == 0 || !strings.Contains(a.Verdict, "may not see enough") {
			t.Errorf("without %s: %+v", name, a)
		}
	}
}
