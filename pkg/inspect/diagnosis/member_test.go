// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

const setLabel = "cluster.open-cluster-management.io/clusterset"

func newSet(name string, selects v1beta1.ManagedClusterSelector) *v1beta1.ManagedClusterSet {
	return &v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: before(time.Hour)}, Spec: v1beta1.ManagedClusterSetSpec{ClusterSelector: selects}}
}

func byLabels(expressions ...metav1.LabelSelectorRequirement) v1beta1.ManagedClusterSelector {
	return v1beta1.ManagedClusterSelector{SelectorType: v1beta1.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}}
}

// memberFacts returns facts of a cluster with labels. The hub lists it as a member if in is true.
func memberFacts(set *v1beta1.ManagedClusterSet, in bool, labels map[string]string) MemberFacts {
	m := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: labels, CreationTimestamp: before(time.Hour),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "labeller", Time: new(before(time.Minute)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + setLabel + `":{}}}}`)}}}}
	facts := MemberFacts{Cluster: "c1", Set: set.Name, Now: now, Object: Found(m), Selects: Found(set), Member: Missing[*viewv1alpha1.ClusterSetMember](),
		Others: Found([]v1beta1.ManagedClusterSet{*set, *newSet("other", v1beta1.ManagedClusterSelector{})}), MayLabel: Found(true)}
	if in {
		facts.Member = Found(&viewv1alpha1.ClusterSetMember{})
	}
	return facts
}

func TestOfMember(t *testing.T) {
	req := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	exclusive := newSet("s", v1beta1.ManagedClusterSelector{})
	labelled := newSet("s", byLabels(req("env", metav1.LabelSelectorOpIn, "test", "dev"), req("old", metav1.LabelSelectorOpDoesNotExist)))
	for name, test := range map[string]struct {
		facts MemberFacts
		id    ID
		step  string
		says  []string
	}{
		"in":                      {facts: memberFacts(exclusive, true, map[string]string{setLabel: "s"})},
		"in a set of all":         {facts: memberFacts(newSet("s", byLabels()), true, nil)},
		"in a set by selector":    {facts: memberFacts(labelled, true, map[string]string{"env": "dev"})},
		"no label":                {memberFacts(exclusive, false, nil), LabelMissing, "selector", []string{"kubectl hub label c1 " + setLabel + "=s --overwrite", "you, or another"}},
		"in another, exclusive":   {memberFacts(exclusive, false, map[string]string{setLabel: "other"}), LabelDiffers, "selector", []string{"the set other, which claims", "by labeller, 60s ago"}},
		"another value":           {memberFacts(labelled, false, map[string]string{"env": "prod"}), LabelDiffers, "selector", []string{"label c1 env=dev --overwrite"}},
		"left out by a label":     {memberFacts(labelled, false, map[string]string{"env": "dev", "old": ""}), LabelExcludes, "selector", []string{"label c1 old- "}},
		"both":                    {memberFacts(labelled, false, map[string]string{"old": ""}), LabelMissing, "selector", []string{"label c1 env=dev old- "}},
		"any value would do":      {memberFacts(newSet("s", byLabels(req("env", metav1.LabelSelectorOpExists))), false, nil), LabelMissing, "selector", []string{"<KEY>=<VALUE>"}},
		"a selector of nothing":   {memberFacts(newSet("s", v1beta1.ManagedClusterSelector{SelectorType: v1beta1.LabelSelector}), false, nil), SetSelectsNothing, "selector", nil},
		"a selector without type": {memberFacts(newSet("s", v1beta1.ManagedClusterSelector{SelectorType: "What"}), false, nil), SetSelectsNothing, "selector", nil},
		"not shown by the hub":    {memberFacts(exclusive, false, map[string]string{setLabel: "s"}), NotYetMember, "member", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := OfMember(test.facts)
			checkAnswer(t, a, test.id, test.step, test.says...)
			if in := !strings.Contains(a.Verdict, "not in"); in != (test.id == "") {
				t.Errorf("the verdict is %q", a.Verdict)
			}
		})
	}
}

func TestOfMember_Permissions(t *testing.T) {
	exclusive := newSet("s", v1beta1.ManagedClusterSelector{})
	refused := memberFacts(exclusive, false, nil)
	refused.MayLabel = Found(false)
	checkAnswer(t, OfMember(refused), LabelMissing, "selector", "you may not", "kubectl hub why access <YOUR NAME> write "+setLabel+"=s")

	gone := memberFacts(exclusive, false, nil)
	gone.Object = Missing[*clusterv1.ManagedCluster]()
	checkAnswer(t, OfMember(gone), ClusterMissing, "cluster")
	noSet := memberFacts(exclusive, false, nil)
	noSet.Selects = Missing[*v1beta1.ManagedClusterSet]()
	checkAnswer(t, OfMember(noSet), SetMissing, "set")

	hidden := memberFacts(exclusive, false, nil)
	hidden.Object = Hidden[*clusterv1.ManagedCluster]("no cluster")
	checkAnswer(t, OfMember(hidden), NotAMember, "member", "you may not see them")
	hidden.Selects = Hidden[*v1beta1.ManagedClusterSet]("no set")
	if a := OfMember(hidden); !a.IsBlind() || !strings.Contains(strings.Join(a.Unseen, ""), "no cluster") {
		t.Errorf("a hidden cluster: %+v", a)
	}
	if a := OfMember(MemberFacts{Cluster: "c1", Set: "s"}); !a.IsBlind() {
		t.Errorf("nothing was read: %+v", a)
	}
	// A viewer of the set may get the member, and that is enough.
	hidden.Selects, hidden.Member = Found(exclusive), Found(&viewv1alpha1.ClusterSetMember{})
	if a := OfMember(hidden); a.Finding != nil || a.IsBlind() {
		t.Errorf("a member that is seen: %+v", a)
	}
}
