// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// Expressions with a high cost, or with results much larger than their input, select nothing, and use no more memory than they may.
func TestCEL_IsBounded(t *testing.T) {
	long := strings.Repeat("a", 1000)
	for name, text := range map[string]string{
		"loops":          `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))`,
		"replace":        `"x".replace("x", "` + long + `").replace("a", "` + long + `").replace("a", "` + long + `").size() > 0`,
		"replace some":   `"x".replace("x", "` + long + `").replace("a", "` + long + `", 900).replace("a", "` + long + `", 900000).size() > 0`,
		"join":           `["` + long + `"].map(x, x.split("").join(x))[0].split("a").join("` + long + `").size() > 0`,
		"format":         `["` + long + `"].map(x, x.replace("a", "%s").format(x.split("").map(y, x.replace("a", "bb"))))[0].size() > 0`,
		"quote":          strings.Repeat("strings.quote(", 30) + `"\""` + strings.Repeat(")", 30) + `.size() > 0`,
		"doubling":       doubled(40) + `.size() > 0`,
		"another object": `{"metadata": {"name": "c2"}}.scores("s").size() == 0`,
		"no truth value": `"true"`,
		"an error":       `managedCluster.metadata.labels["none"] == "x"`,
		"not JSON":       `"{".parseJSON() == null`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, managed("c1"))
			w.score("c2", "s", "s", 1)
			w.spec().Predicates = one(withCEL(anything, text))
			spec.Compile(w.spec())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w.expect()
			runtime.ReadMemStats(&after)
			w.satisfied("False NoManagedClusterMatched", "predicate 0: 1 cluster by the celSelector")
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

// doubled returns an expression that doubles a text so many times.
func doubled(times int) string {
	expression := `["x"]`
	for range times {
		expression += `.map(x, x + x)`
	}
	return expression + "[0]"
}

// Expressions below the limits are not affected by them.
func TestCEL_Text(t *testing.T) {
	for _, text := range []string{
		`"a-b-c".replace("-", "+") == "a+b+c"`,
		`"a-b-c".replace("-", "", 1) == "ab-c"`,
		`"a-b-c".replace("-", "+", 0) == "a-b-c"`,
		`["a", "b"].join() == "ab" && ["a", "b"].join(", ") == "a, b" && [].join("x") == ""`,
		`"%s has %d of %.1f and %s".format(["c1", 3, 1.5, ["x", 1]]) == "c1 has 3 of 1.5 and [x, 1]"`,
		`"%x".format(["ab"]) == "6162" && "%%".format([]) == "%"`,
		`managedCluster.status.clusterClaims.filter(c, c.name == "gpu").all(c, c.value.parseJSON().H100 > 2)`,
		`managedCluster.status.?none.text.orValue("") == ""`,
		`quantity("1Gi").isGreaterThan(quantity("1Mi")) && ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.1.1")`,
		`url("https://x.example").getHost() == "x.example" && "abc".find("b") == "b" && [1, 2].sum() == 3 && !format.dns1123Label().validate("abc").hasValue()`,
	} {
		w := newWorld(t, managed("c1", `claim:gpu={"H100":4}`))
		w.spec().Predicates = one(withCEL(anything, text))
		if got := w.schedule(); len(got) != 1 {
			t.Errorf("%s does not select the cluster: %+v", text, w.placement.Status.Conditions)
		}
	}
}

// Expressions that are cheap enough for one cluster may not be for all: the placement reports that, and keeps its clusters.
func TestCEL_IsBoundedForAllClusters(t *testing.T) {
	w := newWorld(t, many(300)...)
	w.spec().Predicates = one(withCEL(anything, `managedCluster.metadata.name < "c00003"`))
	w.expect("c00001", "c00002")
	loop := `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))`
	w.spec().Predicates = one(withCEL(anything, loop))
	result := run.Schedule(t.Context(), spec.Compile(w.spec()), w.state())
	if len(result.Steps) > 0 || !slices.Equal(result.Clusters, []string{"c00001", "c00002"}) {
		t.Errorf("clusters %v, steps %v", result.Clusters, result.Steps)
	}
	w.placement.Status = result.Status
	w.condition(clusterv1beta1.PlacementConditionMisconfigured, "True Misconfigured", "Predicate:the CEL expressions cost more than 10300000 for 300 clusters")
}
