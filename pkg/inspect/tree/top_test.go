// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestSortClusters(t *testing.T) {
	use := func(name string, renewed time.Duration, cpu, memory string, works int, state inspect.HealthState) *ClusterUse {
		u := &ClusterUse{Name: name, State: state, Kubernetes: "v1." + cpu}
		if renewed > 0 {
			at := ago(renewed)
			u.Renewed = &at
		}
		if cpu != "" {
			c, m := resource.MustParse(cpu), resource.MustParse(memory)
			u.CPU, u.Memory = &c, &m
		}
		if works >= 0 {
			u.Works = &works
		}
		return u
	}
	for order, want := range map[string]string{
		"name":    "a b c d",
		"lease":   "d b a c", // never renewed first, then the oldest
		"cpu":     "b c a d", // 4, 1500m, 500m
		"memory":  "a b c d", // 1Ti, 2Gi and 1Gi, equal ones by name
		"works":   "c a b d",
		"state":   "b d a c",
		"version": "d c b a",
		"agent":   "c a d b", // skew first
		"upgrade": "d c a b", // failed, under way, outdated, done
	} {
		all := []*ClusterUse{use("c", time.Second, "1500m", "1Gi", 12, inspect.Healthy), use("d", 0, "", "", -1, inspect.Unknown),
			use("b", time.Hour, "4", "2Gi", 2, inspect.Unhealthy), use("a", time.Minute, "500m", "1Ti", 7, inspect.Healthy)}
		all[0].Agent, all[0].Skew, all[1].Agent, all[2].Agent, all[3].Agent = "v9", "newer than the hub", "v2", "v3", "v1"
		all[0].Upgrade, all[1].Upgrade, all[2].Upgrade, all[3].Upgrade = "v9: upgrading: degraded: failed: x", "v9: failed: x", "v9: done", "outdated"
		all[0].UpgradeState, all[1].UpgradeState, all[2].UpgradeState, all[3].UpgradeState = UpgradeRunning, UpgradeFailed, UpgradeDone, UpgradeOutdated
		sorted, err := SortClusters(all, order, 0)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, u := range sorted {
			names = append(names, u.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
		if most, err := SortClusters(all, order, 3); err != nil || len(most) != 3 || most[0].Name != names[0] {
			t.Errorf("by %s, of three: %v, %v", order, most, err)
		}
	}
	if len(ClusterOrders()) != 9 {
		t.Error("an order is without a test")
	}
	if _, err := SortClusters(nil, "size", 0); err == nil || !strings.Contains(err.Error(), "cpu, lease, memory") {
		t.Errorf("an order that is none: %v", err)
	}
}

func TestUseOf(t *testing.T) {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	if u := UseOf(c); u.State != inspect.Progressing || u.Available != "Unknown" || u.CPU != nil || u.Clock != "Unknown" || u.Waits {
		t.Errorf("of a new cluster: %+v", u)
	}
	c.Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("4")}
	c.Status.Conditions = []metav1.Condition{condition(registration.ConditionJoined, "True", 0), condition(registration.ConditionAvailable, "False", 0),
		condition(registration.ConditionClockSynced, "False", 0), condition(registration.ConditionRequestWaits, "True", 0)}
	if u := UseOf(c); u.State != inspect.Unhealthy || u.Available != "False" || u.CPU.String() != "4" || u.Memory != nil || u.Clock != "False" || !u.Waits {
		t.Errorf("it is %+v", u)
	}
}

func TestSortSets(t *testing.T) {
	sets := map[string]*SetUse{}
	for set, states := range map[string][]metav1.ConditionStatus{"large": {"True", "True", "True"}, "broken": {"False", ""}, "empty": nil} {
		sets[set] = &SetUse{Name: set}
		for _, s := range states {
			sets[set].Count(member("c", s))
		}
	}
	if u := *sets["broken"]; u != (SetUse{Name: "broken", Members: 2, NotAvailable: 1, Unknown: 1}) {
		t.Errorf("it counts %+v", u)
	}
	for order, want := range map[string]string{"name": "broken", "members": "large", "missing": "broken"} {
		sorted, err := SortSets([]*SetUse{sets["empty"], sets["large"], sets["broken"]}, order, 1)
		if err != nil || len(sorted) != 1 || sorted[0].Name != want {
			t.Errorf("by %s: %v, %v", order, sorted, err)
		}
	}
	if _, err := SortSets(nil, "size", 0); err == nil {
		t.Error("there is an order by size")
	}
}
