// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

func over(keyType clusterv1beta1.TopologyKeyType, key string, maxSkew int32, action clusterv1beta1.UnsatisfiableMaxSkewAction) clusterv1beta1.SpreadConstraintsTerm {
	return clusterv1beta1.SpreadConstraintsTerm{TopologyKey: key, TopologyKeyType: keyType, MaxSkew: maxSkew, WhenUnsatisfiable: action}
}

// zones returns a world with a1 to a4 in the zone a, b1 and b2 in b, and c1 in c; x is in none.
func zones(t *testing.T) *world {
	w := newWorld(t)
	for zone, n := range map[string]int{"a": 4, "b": 2, "c": 1} {
		for i := range n {
			w.add(managed(fmt.Sprintf("%s%d", zone, i+1), "label:zone="+zone, "claim:area="+zone))
		}
	}
	w.add(managed("x"))
	return w
}

func TestSpread(t *testing.T) {
	const label, claim = clusterv1beta1.TopologyKeyTypeLabel, clusterv1beta1.TopologyKeyTypeClaim
	const strict, soft = clusterv1beta1.DoNotSchedule, clusterv1beta1.ScheduleAnyway
	for name, test := range map[string]struct {
		number      *int32
		constraints []clusterv1beta1.SpreadConstraintsTerm
		want        []string
		satisfied   string
	}{
		"none":                    {number(3), nil, []string{"a1", "a2", "a3"}, "True AllDecisionsScheduled"},
		"one of each":             {number(3), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, soft)}, []string{"a1", "b1", "c1"}, "True AllDecisionsScheduled"},
		"by claim":                {number(3), []clusterv1beta1.SpreadConstraintsTerm{over(claim, "area", 1, strict)}, []string{"a1", "b1", "c1"}, "True AllDecisionsScheduled"},
		"a greater skew":          {number(3), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 2, soft)}, []string{"a1", "a2", "b1"}, "True AllDecisionsScheduled"},
		"anyway":                  {number(7), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, soft)}, []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"}, "True AllDecisionsScheduled"},
		"anyway, the least over":  {number(6), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, soft)}, []string{"a1", "a2", "a3", "b1", "b2", "c1"}, "True AllDecisionsScheduled"},
		"strict leaves out":       {number(7), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, strict)}, []string{"a1", "a2", "b1", "b2", "c1"}, "False NotAllDecisionsScheduled"},
		"strict without a number": {nil, []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, strict)}, []string{"a1", "a2", "b1", "b2", "c1"}, "False NotAllDecisionsScheduled"},
		"anyway without a number": {nil, []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, soft)}, []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1", "x"}, "True AllDecisionsScheduled"},
		"a key that nobody has":   {nil, []clusterv1beta1.SpreadConstraintsTerm{over(label, "none", 1, strict)}, []string{}, "False NotAllDecisionsScheduled"},
		"the first is more important": {number(4), []clusterv1beta1.SpreadConstraintsTerm{over(label, "zone", 1, strict), over(label, "none", 1, soft)},
			[]string{"a1", "a2", "b1", "c1"}, "True AllDecisionsScheduled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := zones(t)
			w.spec().NumberOfClusters = test.number
			w.spec().SpreadPolicy.SpreadConstraints = test.constraints
			w.expect(test.want...)
			w.satisfied(test.satisfied, "")
		})
	}
}

// No strict constraint is ever broken, and chosen clusters stay.
func TestSpread_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		w := newWorld(t)
		all := many(40)
		for _, c := range all {
			c.Labels["zone"] = fmt.Sprint(random.IntN(5))
			c.Labels["rack"] = fmt.Sprint(random.IntN(3))
			w.add(c)
		}
		w.spec().NumberOfClusters = number(int32(random.IntN(45)))
		w.spec().SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{
			over(clusterv1beta1.TopologyKeyTypeLabel, "zone", int32(1+random.IntN(3)), clusterv1beta1.DoNotSchedule),
			over(clusterv1beta1.TopologyKeyTypeLabel, "rack", 1, clusterv1beta1.ScheduleAnyway),
		}
		first := w.schedule()
		w.checkSkew("zone", int(w.spec().SpreadPolicy.SpreadConstraints[0].MaxSkew), all, first)
		w.expect(first...)
	}
}

func (w *world) checkSkew(label string, most int, all []*clusterv1.ManagedCluster, chosen []string) {
	w.t.Helper()
	counts := map[string]int{}
	for _, c := range all {
		counts[c.Labels[label]] += 0
	}
	for _, name := range chosen {
		counts[w.fleet.Cluster(name).Object.Labels[label]]++
	}
	least, greatest := len(all), 0
	for _, n := range counts {
		least, greatest = min(least, n), max(greatest, n)
	}
	if greatest-least > most {
		w.t.Fatalf("counts %v with a skew above %d", counts, most)
	}
}
