// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func condition(conditionType string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: conditionType + string(status), Message: "it says so", ObservedGeneration: generation,
		LastTransitionTime: ago(5 * time.Minute)}
}

func member(cluster string, available metav1.ConditionStatus) *viewv1alpha1.ClusterSetMember {
	return &viewv1alpha1.ClusterSetMember{Spec: viewv1alpha1.ClusterSetMemberSpec{ClusterSet: "s", Cluster: cluster},
		Status: viewv1alpha1.ClusterSetMemberStatus{Accepted: true, Joined: metav1.ConditionTrue, Available: available}}
}

func work(generation int64, applied, available metav1.ConditionStatus, manifests ...metav1.ConditionStatus) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "web", Generation: 2}}
	w.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, applied, generation), condition(workv1.WorkAvailable, available, generation)}
	for i, status := range manifests {
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint("m", i)},
			Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, metav1.ConditionTrue, 0), condition(workv1.ManifestAvailable, status, 0)}})
	}
	return w
}

// TestStates verifies which states are considered healthy. Unknown is not.
func TestStates(t *testing.T) {
	cluster := func(change func(*clusterv1.ManagedCluster)) *Node {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		c.Status.Conditions = []metav1.Condition{condition(registration.ConditionJoined, metav1.ConditionTrue, 0), condition(registration.ConditionAvailable, metav1.ConditionTrue, 0)}
		change(c)
		return Cluster(c)
	}
	available := func(status metav1.ConditionStatus) *Node {
		return cluster(func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions[1] = condition(registration.ConditionAvailable, status, 0)
		})
	}
	deleted := ago(time.Minute)
	request := func(phase string, generation int64) *Node {
		r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		r.Status.Phase, r.Status.ObservedGeneration = phase, generation
		r.Status.Conditions = []metav1.Condition{condition("AccessReady", metav1.ConditionFalse, 0)}
		return AccessRequest(r)
	}
	placement := func(conditions ...metav1.Condition) *Node {
		return Placement(&v1beta1.Placement{Status: v1beta1.PlacementStatus{Conditions: conditions}})
	}
	replicas := func(degraded int, conditions ...metav1.Condition) *Node {
		r := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		r.Status.Conditions, r.Status.Summary.Degraded = conditions, degraded
		return ReplicaSet(r)
	}
	with := func(w *workv1.ManifestWork, conditionType string) *workv1.ManifestWork {
		w.Status.Conditions = append(w.Status.Conditions, condition(conditionType, metav1.ConditionTrue, 2))
		return w
	}
	unaccepted := member("c", metav1.ConditionTrue)
	unaccepted.Status.Accepted = false
	unjoined := member("c", metav1.ConditionUnknown)
	unjoined.Status.Joined = metav1.ConditionFalse
	for name, test := range map[string]struct {
		node   *Node
		state  inspect.HealthState
		reason string
	}{
		"a member that is available":      {Member(member("c", metav1.ConditionTrue)), inspect.Healthy, ""},
		"a member that is not":            {Member(member("c", metav1.ConditionFalse)), inspect.Unhealthy, ""},
		"a member of which nothing known": {Member(member("c", "")), inspect.Unknown, ""},
		"a member that is not accepted":   {Member(unaccepted), inspect.Progressing, inspect.ReasonNotAccepted},
		"a member that has not joined":    {Member(unjoined), inspect.Progressing, inspect.ReasonNotJoined},

		"a cluster that is available":     {available(metav1.ConditionTrue), inspect.Healthy, "ManagedClusterConditionAvailableTrue"},
		"a cluster that is not":           {available(metav1.ConditionFalse), inspect.Unhealthy, "ManagedClusterConditionAvailableFalse"},
		"a cluster that is silent":        {available(metav1.ConditionUnknown), inspect.Unknown, "ManagedClusterConditionAvailableUnknown"},
		"a cluster without the condition": {cluster(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = c.Status.Conditions[:1] }), inspect.Unknown, inspect.ReasonNotTold},
		"a cluster that has not joined":   {cluster(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = c.Status.Conditions[1:] }), inspect.Progressing, inspect.ReasonNotJoined},
		"a cluster that is denied":        {cluster(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }), inspect.Progressing, inspect.ReasonNotAccepted},
		"a cluster that is deleted":       {cluster(func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &deleted }), inspect.Progressing, inspect.ReasonDeleting},

		"a work that is available":             {Work(work(2, "True", "True", "True"), inspect.Healthy), inspect.Healthy, "AppliedTrue"},
		"a work that is not applied":           {Work(work(2, "False", "True"), inspect.Healthy), inspect.Unhealthy, "AppliedFalse"},
		"a work that is not available":         {Work(work(2, "True", "False"), inspect.Healthy), inspect.Unhealthy, "AvailableFalse"},
		"a work of an earlier spec":            {Work(work(1, "True", "True", "True"), inspect.Healthy), inspect.Unknown, inspect.ReasonNotTold},
		"a work that nothing is told of":       {Work(&workv1.ManifestWork{}, inspect.Healthy), inspect.Unknown, inspect.ReasonNotTold},
		"a work on a cluster that is silent":   {Work(work(2, "True", "True", "True"), inspect.Unknown), inspect.Unknown, inspect.ReasonStale},
		"a work on a cluster that is not well": {Work(work(2, "True", "True", "True"), inspect.Unhealthy), inspect.Unknown, inspect.ReasonStale},
		"a work that fails on a silent one":    {Work(work(2, "False", "True"), inspect.Unknown), inspect.Unhealthy, "AppliedFalse"},
		"a work that is degraded":              {Work(with(work(2, "True", "True"), workv1.WorkDegraded), inspect.Healthy), inspect.Unhealthy, "DegradedTrue"},
		"a work that goes on":                  {Work(with(work(2, "True", "True"), workv1.WorkProgressing), inspect.Healthy), inspect.Progressing, "ProgressingTrue"},
		"a work that is deleted":               {Work(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}, inspect.Healthy), inspect.Progressing, inspect.ReasonDeleting},

		"a request that is granted":           {request(v1alpha1.REQUEST_GRANTED, 2), inspect.Healthy, "Granted"},
		"a request that was, and was changed": {request(v1alpha1.REQUEST_GRANTED, 1), inspect.Progressing, "AccessReadyFalse"},
		"a request that is denied":            {request(v1alpha1.REQUEST_DENIED, 2), inspect.Unhealthy, "AccessReadyFalse"},
		"a request that waits":                {request("", 0), inspect.Progressing, "AccessReadyFalse"},

		"a placement that is satisfied":      {placement(condition(v1beta1.PlacementConditionSatisfied, "True", 0)), inspect.Healthy, "PlacementSatisfiedTrue"},
		"a placement that is not":            {placement(condition(v1beta1.PlacementConditionSatisfied, "False", 0)), inspect.Unhealthy, "PlacementSatisfiedFalse"},
		"a placement that cannot be":         {placement(condition(v1beta1.PlacementConditionSatisfied, "True", 0), condition(v1beta1.PlacementConditionMisconfigured, "True", 0)), inspect.Unhealthy, "PlacementMisconfiguredTrue"},
		"a placement that is not looked at":  {placement(), inspect.Unknown, inspect.ReasonNotTold},
		"a chosen cluster that is not shown": {Chosen("c", "0", nil), inspect.Unknown, inspect.ReasonNotSeen},

		"a replica set that is rolled out": {replicas(0, condition("PlacementVerified", "True", 2), condition("PlacementRolledOut", "True", 2), condition("ManifestworkApplied", "True", 2)), inspect.Healthy, "ManifestworkAppliedTrue"},
		"a replica set on its way":         {replicas(0, condition("PlacementVerified", "True", 2), condition("PlacementRolledOut", "False", 2), condition("ManifestworkApplied", "False", 2)), inspect.Progressing, "PlacementRolledOutFalse"},
		"a replica set that is degraded":   {replicas(1, condition("PlacementVerified", "True", 2), condition("PlacementRolledOut", "False", 2), condition("ManifestworkApplied", "False", 2)), inspect.Unhealthy, "PlacementRolledOutFalse"},
		"a replica set without placement":  {replicas(0, condition("PlacementVerified", "False", 2)), inspect.Unhealthy, "PlacementVerifiedFalse"},
		"a replica set that was changed":   {replicas(0, condition("PlacementVerified", "True", 1)), inspect.Unknown, inspect.ReasonNotTold},

		"a namespace that is not there": {Namespace("c", nil), inspect.Unhealthy, inspect.ReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if test.node.State != test.state || test.node.Reason != test.reason {
				t.Errorf("it is %s (%s), want %s (%s)", test.node.State, test.node.Reason, test.state, test.reason)
			}
		})
	}
}

func printed(n *Node) string {
	rows, unseen := n.Rows(now)
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, strings.TrimRight(strings.Join([]string{r.Name, string(r.State), r.Reason, r.Since}, " | "), " |"))
	}
	for _, u := range unseen {
		fmt.Fprintln(&b, "Not seen:", u)
	}
	return b.String()
}

// fleet returns a set: 40 clusters that are available, with a work on the first; one with a failing manifest; and some that do not respond.
func fleet(silent int) *Node {
	root := &Node{Kind: KindSet, Name: "s", Health: inspect.Health{State: inspect.Healthy}, Unseen: []string{"the works on 2 clusters"}}
	for i := range 40 {
		c := Member(member(fmt.Sprintf("c%02d", i), metav1.ConditionTrue))
		if i == 0 {
			c.Add(Work(work(2, "True", "True", "True", "True"), c.State))
		}
		root.Add(c)
	}
	failing := Member(member("failing", metav1.ConditionTrue))
	failing.Add(Work(work(2, "True", "False", "True", "False", "True"), failing.State), Work(work(2, "True", "True", "True"), failing.State))
	root.Add(failing)
	for i := range silent {
		c := Member(member(fmt.Sprint("silent", i), metav1.ConditionUnknown))
		c.Add(Work(work(2, "True", "True", "True", "True"), c.State))
		root.Add(c)
	}
	return root
}

func TestFold_ExpandsOnlyDifferences(t *testing.T) {
	root := fleet(5)
	want := `ManagedClusterSet/s | Healthy
├─ManagedCluster/failing | Healthy
│ ├─ManifestWork/web | Unhealthy | AvailableFalse | 5m
│ │ ├─Manifest/ConfigMap web/m1 | Unhealthy | AvailableFalse | 5m
│ │ └─2 manifests available: ConfigMap web/m0, ConfigMap web/m2 | Healthy | AvailableTrue
│ └─ManifestWork/web | Healthy | AppliedTrue | 5m
├─ManagedCluster/silent0 | Unknown
│ └─ManifestWork/web | Unknown | Stale | 5m
├─ManagedCluster/silent1 | Unknown
│ └─ManifestWork/web | Unknown | Stale | 5m
├─ManagedCluster/silent2 | Unknown
│ └─ManifestWork/web | Unknown | Stale | 5m
├─2 more clusters: silent3, silent4 | Unknown
└─40 clusters available: c00, c01, c02, … | Healthy
Not seen: the works on 2 clusters
`
	if got := printed(Fold(root)); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	// Folding page by page while reading has the same result.
	for _, c := range root.Children {
		for i := range c.Children {
			c.Children[i] = Close(c.Children[i])
		}
	}
	if got := printed(Fold(root)); got != want {
		t.Errorf("of works that were closed it is\n%s\nwant\n%s", got, want)
	}
}

func TestFold_RetainsSingle(t *testing.T) {
	for silent, want := range map[int]string{4: "ManagedCluster/silent3 | Unknown\n│ └─ManifestWork/web | Unknown | Stale | 5m", 3: "ManagedCluster/silent2"} {
		got := printed(Fold(fleet(silent)))
		if !strings.Contains(got, want) || strings.Contains(got, " more ") {
			t.Errorf("of %d it is\n%s", silent, got)
		}
	}
}

// TestFold_ChangesNothing verifies that folding does not change the tree that is printed for programs.
func TestFold_ChangesNothing(t *testing.T) {
	root := fleet(5)
	before, _ := json.Marshal(root)
	Fold(root)
	if after, _ := json.Marshal(root); string(before) != string(after) {
		t.Error("the tree has changed")
	}
	if rows, _ := root.Rows(now); len(rows) != 1+40+1+2+1+2+3+1+5*(1+1+2) {
		t.Errorf("there are %d lines of the whole tree:\n%s", len(rows), printed(root))
	}
}

// TestFold_NeverHidesFailures adds a fault at each place, and verifies that its name is printed.
func TestFold_NeverHidesFailures(t *testing.T) {
	for _, kind := range []string{KindCluster, KindWork, KindManifest, KindNamespace, KindManagedNamespace, KindAccessRequest, KindReplicaSet, KindCondition, KindLease} {
		for depth := range 4 {
			root := &Node{Kind: KindSet, Name: "s", Health: inspect.Health{State: inspect.Healthy}}
			at := root
			for d := range depth {
				for i := range 3 {
					at.Add(&Node{Kind: KindCluster, Name: fmt.Sprint("c", d, i), Health: inspect.Health{State: inspect.Healthy}})
				}
				at = at.Children[1]
			}
			at.Add(&Node{Kind: kind, Name: "other", Health: inspect.Health{State: inspect.Healthy}}, &Node{Kind: kind, Name: "faulty", Health: inspect.Health{State: inspect.Unhealthy, Reason: "Broken"}},
				&Node{Kind: kind, Name: "third", Health: inspect.Health{State: inspect.Healthy}})
			if got := printed(Fold(root)); !strings.Contains(got, "faulty | Unhealthy | Broken") {
				t.Errorf("a fault of a %s at depth %d is hidden:\n%s", kind, depth, got)
			}
		}
	}
}
