// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestVisibleClusters_Apply runs kubectl apply on the clusters of a set, and as an admin on the same stored cluster. Only kubectl and a front
// show that the forwarded request is an apply.
func TestVisibleClusters_Apply(t *testing.T) {
	set, other, cluster := harness.Unique("set"), harness.Unique("set"), harness.Unique("cluster")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	harness.NewManagedCluster(t, cluster, map[string]string{harness.SetLabel: set})
	writer := harness.User(t, harness.Rule("get,patch", "managedclustersets/clusters", set))
	const view, stored = "clusterview.open-cluster-management.io/v1", "cluster.open-cluster-management.io/v1"
	apply := func(who, version, name, manager, labels string, more ...string) (string, error) {
		manifest := "{apiVersion: " + version + ", kind: ManagedCluster, metadata: {name: " + name + ", labels: {" + labels + "}}}"
		args := append([]string{"apply", "--server-side", "-f", "-", "--field-manager", manager}, more...)
		if who != "" {
			args = append(args, "--as", who)
		}
		return harness.Kubectl(t, manifest, args...)
	}
	must := func(out string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(out)
		}
		harness.Contains(t, out, "serverside-applied")
	}
	labels := func() string {
		return harness.MustKubectl(t, "", "get", "managedclusters", cluster, "-o", "jsonpath={.metadata.labels}")
	}
	must(apply(writer, view, cluster, "team", "owner: team, tier: gold"))
	must(apply(writer, view, cluster, "team", "owner: squad", "--dry-run=server"))
	harness.Contains(t, labels(), `"owner":"team"`, `"tier":"gold"`)
	// The admin conflicts with the team's manager, and the team with the admin's.
	out, err := apply("", stored, cluster, "admin", "owner: admin")
	if err == nil || !strings.Contains(out, `conflict with "team"`) {
		t.Errorf("an apply of what the team has: %s", out)
	}
	must(apply("", stored, cluster, "admin", "owner: admin", "--force-conflicts"))
	out, err = apply(writer, view, cluster, "team", "owner: team, tier: gold")
	if err == nil || !strings.Contains(out, `conflict with "admin"`) {
		t.Errorf("an apply of what the admin has: %s", out)
	}
	must(apply(writer, view, cluster, "team", "owner: team", "--force-conflicts"))
	if got := labels(); strings.Contains(got, "tier") || !strings.Contains(got, `"owner":"team"`) {
		t.Errorf("the labels are %s after an apply without the tier", got)
	}
	// With the same manager on the stored cluster, fields that were applied through the view are removed.
	must(apply("", stored, cluster, "team", ""))
	if got := labels(); strings.Contains(got, "owner") {
		t.Errorf("the labels are %s after an apply without any", got)
	}
	before := labels()
	for what, attack := range map[string]struct{ name, labels, says string }{
		"to another set":    {cluster, harness.SetLabel + ": " + other, harness.SetLabel + ":" + other},
		"what is not there": {"nowhere", "a: b", "managedclustersets/clusters"},
	} {
		out, err := apply(writer, view, attack.name, "team", attack.labels, "--force-conflicts")
		if err == nil || !strings.Contains(out, "orbidden") || !strings.Contains(out, attack.says) {
			t.Errorf("%s: %s, want a refusal that says %s", what, out, attack.says)
		}
	}
	if out, err := apply("", view, "nowhere", "admin", "a: b"); err == nil || !strings.Contains(out, "creates nothing") {
		t.Errorf("an admin's apply of what is not there: %s", out)
	}
	if after := labels(); after != before {
		t.Errorf("the labels are %s, and were %s", after, before)
	}
}
