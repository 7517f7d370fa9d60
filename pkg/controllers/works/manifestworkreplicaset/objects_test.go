// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

const (
	verified  = workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified
	rolledOut = workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut
	applied   = workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied
)

// template returns a spec of a work with a text that identifies it. Its keys are in the order of the fake server.
func template(text string) workv1.ManifestWorkSpec {
	raw := fmt.Sprintf(`{"apiVersion":"v1","data":{"text":%q},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`, text)
	return workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}}}
}

// replicaSet returns the set web with the author ann, for placements.
func replicaSet(placements ...string) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"app": "web"},
		Annotations: map[string]string{work.AuthorAnnotation: `{"username":"ann","uid":"1","groups":["team"],"extra":{"scopes":["a"]}}`},
	}}
	set.Spec.ManifestWorkTemplate = template("one")
	for _, p := range placements {
		set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{Name: p})
	}
	return set
}

// progressive sets the rollout of each placement to progressive with the given concurrency.
func progressive(set *workv1alpha1.ManifestWorkReplicaSet, concurrency int, change ...func(*clusterv1alpha1.RolloutProgressive)) *workv1alpha1.ManifestWorkReplicaSet {
	for i := range set.Spec.PlacementRefs {
		p := &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt(concurrency)}
		for _, c := range change {
			c(p)
		}
		set.Spec.PlacementRefs[i].RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: p}
	}
	return set
}

func placement(name string) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}}
}

// decision returns the decision of a group of a placement.
func decision(placement string, group int, groupName string) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: fmt.Sprintf("%s-decision-%d", placement, group+1), Labels: map[string]string{
			clusterv1beta1.PlacementLabel: placement, clusterv1beta1.DecisionGroupIndexLabel: fmt.Sprint(group), clusterv1beta1.DecisionGroupNameLabel: groupName,
		},
	}}
}

// decide makes a placement choose clusters, in the group 0.
func (f *fixture) decide(name string, clusters ...string) {
	f.Helper()
	f.decideGroup(decision(name, 0, ""), clusters...)
}

func (f *fixture) decideGroup(d *clusterv1beta1.PlacementDecision, clusters ...string) {
	f.Helper()
	placement := placement(d.Labels[clusterv1beta1.PlacementLabel])
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(placement), placement); err != nil {
		f.create(placement)
	}
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		f.create(d)
	}
	d.Status.Decisions = nil
	for _, c := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	if err := f.client.Status().Update(f.Context(), d); err != nil {
		f.Fatal(err)
	}
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("c%d", i+1))
	}
	return all
}

func (f *fixture) set() *workv1alpha1.ManifestWorkReplicaSet {
	f.Helper()
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := f.client.Get(f.Context(), key, set); err != nil {
		f.Fatal(err)
	}
	return set
}

// there returns all existing works.
func (f *fixture) there() (all []workv1.ManifestWork) {
	f.Helper()
	list := &workv1.ManifestWorkList{}
	if err := f.client.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// texts returns clusters with the text of their work, such as "c1 one".
func (f *fixture) texts() (all []string) {
	f.Helper()
	for _, w := range f.there() {
		_, text, _ := strings.Cut(string(w.Spec.Workload.Manifests[0].Raw), `"text":"`)
		text, _, _ = strings.Cut(text, `"`)
		all = append(all, w.Namespace+" "+text)
	}
	slices.Sort(all)
	return all
}

// report has the agents of clusters report conditions for all works at their generation: "Applied Available" are True, "!Progressing" is False.
func (f *fixture) report(conditions string, clusters ...string) {
	f.Helper()
	for _, w := range f.there() {
		if !slices.Contains(clusters, w.Namespace) {
			continue
		}
		for _, one := range strings.Fields(conditions) {
			kind, isFalse := strings.CutPrefix(one, "!")
			status := metav1.ConditionTrue
			if isFalse {
				status = metav1.ConditionFalse
			}
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: kind, Status: status, Reason: "Told", ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(f.clock.Now().Truncate(time.Second)),
			})
		}
		if err := f.client.Status().Update(f.Context(), &w); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) retext(text string) {
	f.Helper()
	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template(text) })
}

func workKey(cluster, placement string) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster, Name: workName(key, placement)}
}

// report1 is report without a list of all works.
func (f *fixture) report1(conditions, cluster string) {
	f.Helper()
	w := &workv1.ManifestWork{}
	if err := f.client.Get(f.Context(), workKey(cluster, "p"), w); err != nil {
		f.Fatal(err)
	}
	for _, kind := range strings.Fields(conditions) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Told", ObservedGeneration: w.Generation})
	}
	if err := f.client.Status().Update(f.Context(), w); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) condition(kind string) metav1.Condition {
	f.Helper()
	c := meta.FindStatusCondition(f.set().Status.Conditions, kind)
	if c == nil {
		f.Fatalf("no condition %s", kind)
	}
	return *c
}

func (f *fixture) is(kind string, status metav1.ConditionStatus, reason string) {
	f.Helper()
	if c := f.condition(kind); c.Status != status || c.Reason != reason {
		f.Errorf("%s is %s %s %q, want %s %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
}

func (f *fixture) create(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		if err := f.client.Create(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
	}
}
