// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// These are the paths of the placements of the namespace dev, and of an explanation.
const (
	PlacementsPath = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/dev/placements"
	ExplainPath    = PlacementsPath + "/web/explain"
)

// Explained returns an explanation of the placement dev/web.
func Explained(clusters ...v1beta1.ExplainedCluster) *v1beta1.PlacementExplanation {
	e := &v1beta1.PlacementExplanation{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web"}}
	e.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "PlacementExplanation"}
	e.Status.Clusters = clusters
	counts := map[string]int32{}
	for i := range clusters {
		counts[clusters[i].FilteredBy]++
	}
	for _, by := range []string{"", "NumberOfClusters", "Predicate", "TaintToleration"} {
		if counts[by] > 0 {
			e.Status.Counts = append(e.Status.Counts, v1beta1.ExplainedCount{FilteredBy: by, Clusters: counts[by]})
		}
	}
	return e
}

// Fell returns the explanation of a cluster that is not chosen.
func Fell(name, by, message string) v1beta1.ExplainedCluster {
	return v1beta1.ExplainedCluster{ClusterName: name, ClusterSets: []string{"eu"}, FilteredBy: by, Message: message}
}

// NewExplained returns a hub that explains the placement web.
func NewExplained(t *testing.T, e *v1beta1.PlacementExplanation) (*Server, string) {
	p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web"}}
	p.Spec.NumberOfClusters = new(int32(2))
	p.Spec.Predicates = make([]v1beta1.ClusterPredicate, 1)
	p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
	s := NewServer(t, p)
	s.Answer("GET "+ExplainPath, e)
	return s, Kubeconfig(t, map[string]*Server{"hub": s})
}

// NewPlaced returns a hub with the placement dev/web, which has chosen clusters in two groups, and with dev/none and ops/db, which have not.
func NewPlaced(t *testing.T) (*Server, string) {
	t.Helper()
	placement := func(namespace, name, satisfied, reason string) *v1beta1.Placement {
		p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if satisfied != "" {
			p.Status.Conditions = []metav1.Condition{{Type: v1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse},
				{Type: v1beta1.PlacementConditionSatisfied, Status: metav1.ConditionStatus(satisfied), Reason: reason}}
		}
		return p
	}
	decision := func(n int, group, name string, clusters ...string) *v1beta1.PlacementDecision {
		d := &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: fmt.Sprint("web-decision-", n), Labels: map[string]string{
			v1beta1.PlacementLabel: "web", v1beta1.DecisionGroupIndexLabel: group, v1beta1.DecisionGroupNameLabel: name}}}
		for _, c := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, v1beta1.ClusterDecision{ClusterName: c, Score: 7})
		}
		return d
	}
	web := placement("dev", "web", "True", "AllDecisionsScheduled")
	web.Spec.SortBy = v1beta1.PlacementSortByScore
	c1 := NewCluster("c1", nil)
	s := NewServer(t, web, placement("dev", "none", "", ""), placement("ops", "db", "False", "NoManagedClusterMatched"), c1,
		decision(10, "1", "", "c3"), decision(1, "0", "canary", "c1", "c2"))
	return s, Kubeconfig(t, map[string]*Server{"hub": s})
}

// WorksPath is the path of the works, without the namespace.
const WorksPath = "/apis/work.open-cluster-management.io/v1/namespaces/"

// NewWork returns a work of generation 2 with conditions of a given generation.
func NewWork(cluster, name string, generation int64, applied, available metav1.ConditionStatus) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Generation: 2, UID: "u"}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)}}}
	for conditionType, status := range map[string]metav1.ConditionStatus{workv1.WorkApplied: applied, workv1.WorkAvailable: available} {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, ObservedGeneration: generation, Reason: "R"})
	}
	return w
}

// Failing adds a manifest with a condition that is False.
func Failing(w *workv1.ManifestWork, condition, message string) *workv1.ManifestWork {
	w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Kind: "Deployment", Namespace: "web", Name: "nginx"},
		Conditions:   []metav1.Condition{{Type: condition, Status: metav1.ConditionFalse, Message: message}},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
			{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: new(int64(0))}}}},
	})
	return w
}
