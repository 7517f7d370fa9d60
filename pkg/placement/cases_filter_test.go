// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

var anything = clusterv1beta1.ClusterPredicate{}

// predicateCase is a test of predicates.
func predicateCase(predicates []clusterv1beta1.ClusterPredicate, clusters []*clusterv1.ManagedCluster, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, clusters...)
		w.score("c1", "test-addon", "test-score", 90)
		w.score("c2", "test-addon", "test-score", 70)
		w.spec().Predicates = predicates
		w.expect(want...)
	}
}

// taintCase is a test with one cluster, c1, with the taint key1=value1.
func taintCase(effect clusterv1.TaintEffect, toleration *clusterv1beta1.Toleration, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, managed("c1", "taint:key1=value1:"+string(effect)))
		if toleration != nil {
			w.spec().Tolerations = []clusterv1beta1.Toleration{*toleration}
		}
		w.expect(want...)
	}
}

func misconfiguredCase(change func(*clusterv1beta1.PlacementSpec), message string) func(*testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, managed("c1", "taint:key1=value1:NoSelect"))
		change(w.spec())
		w.expect()
		w.condition(clusterv1beta1.PlacementConditionMisconfigured, "True Misconfigured", message)
		w.satisfied("False NotAllDecisionsScheduled", "misconfigured")
	}
}

func one(p clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate {
	return []clusterv1beta1.ClusterPredicate{p}
}

func some(clusters ...*clusterv1.ManagedCluster) []*clusterv1.ManagedCluster { return clusters }

func tolerate(key string, operator clusterv1beta1.TolerationOperator, value string, effect clusterv1.TaintEffect) *clusterv1beta1.Toleration {
	return &clusterv1beta1.Toleration{Key: key, Operator: operator, Value: value, Effect: effect}
}

var filterCases = map[string]func(*testing.T){
	"P018": predicateCase(one(matchLabels("cloud=Amazon")), some(managed("c1", "label:cloud=Amazon"), managed("c2", "label:cloud=Google")), "c1"),
	"P019": predicateCase(one(withClaim(anything, "cloud", "Amazon")), some(managed("c1", "claim:cloud=Amazon"), managed("c2", "claim:cloud=Google")), "c1"),
	"P020": predicateCase(one(withClaim(matchLabels("cloud=Amazon"), "region", "us-east-1")),
		some(managed("c1", "label:cloud=Amazon", "claim:region=us-east-1"), managed("c2", "label:cloud=Amazon", "claim:region=us-east-2")), "c1"),
	"P021": predicateCase([]clusterv1beta1.ClusterPredicate{matchLabels("cloud=Amazon"), withClaim(anything, "region", "us-east-1")},
		some(managed("c1", "label:cloud=Amazon"), managed("c2", "claim:region=us-east-1"), managed("c3", "claim:region=us-east-2")), "c1", "c2"),
	"P022": predicateCase(one(withCEL(anything, `managedCluster.metadata.labels["region"] == "us-east-1"`)),
		some(managed("c1", "label:region=us-east-1"), managed("c2", "label:region=us-west-1"), managed("c3")), "c1"),
	"P023": predicateCase(one(withCEL(anything, `managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`)),
		some(managed("c1", "claim:cloud=Amazon"), managed("c2", "claim:cloud=Google")), "c1"),
	"P024": predicateCase(one(withCEL(anything, `managedCluster.scores("test-addon").filter(s, s.name == 'test-score').all(e, e.value > 80)`)),
		some(managed("c1"), managed("c2"), managed("c3")), "c1"),
	"P025": predicateCase(one(withCEL(anything, `managedCluster.metadata.labels["env"] == "prod"`,
		`managedCluster.scores("test-addon").filter(s, s.name == 'test-score').all(e, e.value > 80)`)),
		some(managed("c1", "label:env=prod"), managed("c2", "label:env=prod")), "c1"),
	"P026": predicateCase(one(withCEL(matchLabels("env=prod"), `managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`)),
		some(managed("c1", "label:env=prod", "claim:cloud=Amazon"), managed("c2", "label:env=prod", "claim:cloud=Azure")), "c1"),
	"P027": misconfiguredCase(func(s *clusterv1beta1.PlacementSpec) { s.Predicates = one(withCEL(anything, "invalid.expression")) }, "Predicate:"),
	"P028": predicateCase(one(withCEL(anything)), some(managed("c1")), "c1"),
	"P029": predicateCase(one(withCEL(anything, `semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.31.0"))`)),
		some(managed("c1", "label:version=1.30.0"), managed("c2", "label:version=1.31.0")), "c1"),
	// The budget of a selector is tested with the expressions, in spec.
	"P030": predicateCase(one(withCEL(anything, `managedCluster.metadata.name == "c1"`, `managedCluster.metadata.name == "c1"`)),
		some(managed("c1"), managed("c2")), "c1"),
	"P031": func(t *testing.T) {
		w := newWorld(t, managed("c1", "label:a=1", "claim:b=1"), managed("c2", "label:a=2", "claim:b=2"))
		for _, predicates := range [][2]clusterv1beta1.ClusterPredicate{
			{matchLabels("a=1"), matchLabels("a=2")},
			{withClaim(anything, "b", "1"), withClaim(anything, "b", "2")},
			{withCEL(anything, `managedCluster.metadata.name == "c1"`), withCEL(anything, `managedCluster.metadata.name == "c2"`)},
		} {
			w.spec().Predicates = one(predicates[0])
			w.expect("c1")
			w.spec().Predicates = one(predicates[1])
			w.expect("c2")
		}
	},
	"P032": taintCase(clusterv1.TaintEffectNoSelect, nil),
	"P033": taintCase(clusterv1.TaintEffectNoSelect, tolerate("key1", "Equal", "value1", ""), "c1"),
	"P034": misconfiguredCase(func(s *clusterv1beta1.PlacementSpec) {
		s.Tolerations = []clusterv1beta1.Toleration{*tolerate("", "Equal", "value1", "")}
	}, "TaintToleration:If the key is empty, operator must be Exists."),
	"P035": misconfiguredCase(func(s *clusterv1beta1.PlacementSpec) {
		s.Tolerations = []clusterv1beta1.Toleration{*tolerate("key1", "Exists", "value1", "")}
	}, "TaintToleration:If the operator is Exists, the value should be empty."),
	"P036": taintCase(clusterv1.TaintEffectNoSelect, tolerate("", "Exists", "", ""), "c1"),
	"P037": taintCase(clusterv1.TaintEffectNoSelectIfNew, nil),
	"P038": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.expect("c1")
		w.add(managed("c1", "taint:key1=value1:NoSelectIfNew"))
		w.expect("c1")
	},
	"P039": taintCase(clusterv1.TaintEffectPreferNoSelect, nil, "c1"),
	"P040": taintCase(clusterv1.TaintEffectNoSelect, tolerate("key1", "Equal", "value1", clusterv1.TaintEffectPreferNoSelect)),
	"P041": func(t *testing.T) {
		w := newWorld(t, managed("c1", "taint:key1=value1:NoSelect"), managed("c2", "taint:key2=value2:NoSelect"), managed("c3", "taint:key2=value3:NoSelect"))
		w.spec().Tolerations = []clusterv1beta1.Toleration{*tolerate("key1", "Exists", "", ""), *tolerate("key2", "Equal", "value2", "")}
		w.expect("c1", "c2")
	},
	"P042": func(t *testing.T) {
		w := newWorld(t, managed("c1", "taint:key1=value1:NoSelect", "taint:key2=value2:NoSelect"),
			managed("c2", "taint:key1=value1:NoSelect", "taint:key3=value3:NoSelect"))
		w.spec().Tolerations = []clusterv1beta1.Toleration{*tolerate("key1", "Exists", "", ""), *tolerate("key2", "Equal", "value2", "")}
		w.expect("c1")
	},
	"P043": func(t *testing.T) { tolerationSeconds(t) },
	"P044": func(t *testing.T) {
		w := tolerationSeconds(t)
		if want := w.now.Add(time.Second); !w.last.Again.Equal(want) {
			t.Errorf("again at %v, want %v", w.last.Again, want)
		}
		w.now = w.now.Add(time.Second)
		w.expect("c1")
		w.now = w.now.Add(time.Second)
		w.expect()
		if !w.last.Again.IsZero() {
			t.Error("again at", w.last.Again)
		}
	},
	"P045": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.spec().NumberOfClusters = number(1)
		w.spec().Tolerations = []clusterv1beta1.Toleration{*tolerate("key1", "Exists", "value1", "")}
		w.expect()
		w.emptyDecision()
		w.condition(clusterv1beta1.PlacementConditionMisconfigured, "True Misconfigured", "")
		w.spec().Tolerations = nil
		w.expect("c1")
		w.condition(clusterv1beta1.PlacementConditionMisconfigured, "False Succeedconfigured", "Placement configurations check pass")
		w.satisfied("True AllDecisionsScheduled", "")
	},
	"P046": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		unknown := exclusiveSet("s1")
		unknown.Spec.ClusterSelector.SelectorType = "Moon"
		w.fleet.SetSet(unknown)
		w.schedule()
		w.condition(clusterv1beta1.PlacementConditionMisconfigured, "False Succeedconfigured", "Placement configurations check pass")
		w.satisfied("False NotAllDecisionsScheduled", "Moon")
	},
}

func tolerationSeconds(t *testing.T) *world {
	w := newWorld(t)
	for i, ago := range []time.Duration{8, 9, 10} {
		c := managed([]string{"c1", "c2", "c3"}[i], "taint:key1=value1:NoSelect")
		c.Spec.Taints[0].TimeAdded = metav1.NewTime(w.now.Add(-ago * time.Second))
		w.add(c)
	}
	seconds := int64(10)
	w.spec().Tolerations = []clusterv1beta1.Toleration{{Key: "key1", Operator: "Exists", TolerationSeconds: &seconds}}
	w.expect("c1", "c2")
	return w
}
