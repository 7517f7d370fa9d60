// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// What people type.

func TestKubectl_ListsTheResources(t *testing.T) {
	out := harness.MustKubectl(t, "", "api-resources")
	for _, want := range [][]string{
		{"managedclusters", "mcl,mcls", "cluster.open-cluster-management.io/v1", "false", "ManagedCluster"},
		{"managedclustersets", "mclset,mclsets", "cluster.open-cluster-management.io/v1beta2", "false", "ManagedClusterSet"},
		{"managedclustersetbindings", "mclsetbinding,mclsetbindings", "cluster.open-cluster-management.io/v1beta2", "true", "ManagedClusterSetBinding"},
		{"placements", "cluster.open-cluster-management.io/v1beta1", "true", "Placement"},
		{"placementdecisions", "cluster.open-cluster-management.io/v1beta1", "true", "PlacementDecision"},
		{"addonplacementscores", "cluster.open-cluster-management.io/v1alpha1", "true", "AddOnPlacementScore"},
		{"clusterclaims", "cluster.open-cluster-management.io/v1alpha1", "false", "ClusterClaim"},
		{"manifestworks", "work.open-cluster-management.io/v1", "true", "ManifestWork"},
		{"appliedmanifestworks", "work.open-cluster-management.io/v1", "false", "AppliedManifestWork"},
		{"manifestworkreplicasetrevisions", "mwrsr", "work.open-cluster-management.io/v1alpha1", "true", "ManifestWorkReplicaSetRevision"},
		{"manifestworkreplicasets", "mwrs", "work.open-cluster-management.io/v1alpha1", "true", "ManifestWorkReplicaSet"},
		{"managedclusters", "clusterview.open-cluster-management.io/v1", "false", "ManagedCluster"},
		{"managedclustersets", "clusterview.open-cluster-management.io/v1alpha1", "false", "ManagedClusterSet"},
		{"clustersetmembers", "csm", "view.clusterhub.dev/v1alpha1", "false", "ClusterSetMember"},
	} {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return slices.Equal(strings.Fields(line), want) }) {
			t.Errorf("no line %v in:\n%s", want, out)
		}
	}
	harness.Contains(t, harness.MustKubectl(t, "", "api-versions"), "cluster.open-cluster-management.io/v1beta1")
}

// TestKubectl_ExplainsEveryField verifies that every field of the schema has a description.
func TestKubectl_ExplainsEveryField(t *testing.T) {
	for _, group := range []string{"cluster.open-cluster-management.io/v1", "cluster.open-cluster-management.io/v1alpha1", "cluster.open-cluster-management.io/v1beta1",
		"cluster.open-cluster-management.io/v1beta2", "clusterview.open-cluster-management.io/v1", "clusterview.open-cluster-management.io/v1alpha1", "view.clusterhub.dev/v1alpha1",
		"work.open-cluster-management.io/v1", "work.open-cluster-management.io/v1alpha1"} {
		ours := 0
		for name, schema := range harness.OpenAPIModels(t, group) {
			if strings.HasPrefix(name, "io.k8s.") {
				continue
			}
			ours++
			if !strings.HasPrefix(name, "io.open-cluster-management.") && !strings.HasPrefix(name, "dev.clusterhub.") {
				t.Errorf("%s: the model is named %s", group, name)
			}
			if schema.Description == "" {
				t.Errorf("%s: %s has no description", group, name)
			}
			for field, property := range schema.Properties {
				if property.Description == "" {
					t.Errorf("%s: %s.%s has no description", group, name, field)
				}
			}
		}
		if ours == 0 {
			t.Errorf("%s has no models of ours", group)
		}
	}
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "managedcluster.spec.taints.effect"), "NoSelectIfNew", "PreferNoSelect")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "managedclusterset.spec.clusterSelector", "--api-version=cluster.open-cluster-management.io/v1beta1"), "exclusiveLabel", "selectorType")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "csm.status"), "accepted", "joined", "selectedBy")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "managedcluster", "--recursive"), "leaseDurationSeconds")
}

const clusterYAML = `
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: NAME
  labels: {env: dev}
spec:
  leaseDurationSeconds: 30
`

func TestKubectl_CreatesAppliesDiffsAndPatches(t *testing.T) {
	name := harness.Unique("kubectl")
	t.Cleanup(func() {
		_ = harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "mcl", name, "--ignore-not-found").Run()
	})
	manifest := strings.ReplaceAll(clusterYAML, "NAME", name)
	harness.Contains(t, harness.MustKubectl(t, manifest, "apply", "--dry-run=server", "-f", "-"), "created (server dry run)")
	if out, err := harness.Kubectl(t, "", "get", "mcl", name); err == nil {
		t.Errorf("a dry run has created it: %s", out)
	}
	harness.MustKubectl(t, manifest, "create", "-f", "-")
	harness.Contains(t, harness.MustKubectl(t, manifest, "apply", "-f", "-"), "configured")
	harness.Contains(t, harness.MustKubectl(t, manifest, "apply", "-f", "-"), "unchanged")
	harness.MustKubectl(t, manifest, "diff", "-f", "-")
	changed := strings.Replace(manifest, "30", "45", 1)
	out, err := harness.Kubectl(t, changed, "diff", "-f", "-")
	if err == nil {
		t.Error("kubectl diff sees no difference")
	}
	harness.Contains(t, out, "-  leaseDurationSeconds: 30", "+  leaseDurationSeconds: 45")
	harness.Contains(t, harness.MustKubectl(t, changed, "apply", "-f", "-"), "configured")

	// By server-side apply, two managers conflict on each other's fields, unless they force the change.
	harness.MustKubectl(t, changed, "apply", "--server-side", "--force-conflicts", "--field-manager=one", "-f", "-")
	out, err = harness.Kubectl(t, strings.Replace(changed, "45", "50", 1), "apply", "--server-side", "--field-manager=two", "-f", "-")
	if err == nil {
		t.Error("a conflict between two managers went unnoticed")
	}
	harness.Contains(t, out, "conflict", "leaseDurationSeconds")
	harness.MustKubectl(t, strings.Replace(changed, "45", "50", 1), "apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.spec.leaseDurationSeconds}"), "50")

	for kind, patch := range map[string]string{
		"merge":     `{"spec":{"leaseDurationSeconds":61}}`,
		"strategic": `{"spec":{"leaseDurationSeconds":62}}`,
		"json":      `[{"op":"replace","path":"/spec/leaseDurationSeconds","value":63}]`,
	} {
		harness.Contains(t, harness.MustKubectl(t, "", "patch", "mcl", name, "--type", kind, "-p", patch), "patched")
	}
	harness.MustKubectl(t, "", "patch", "mcl", name, "--subresource=status", "--type=merge", "-p", `{"status":{"version":{"kubernetes":"v1.37.1"}}}`)
	harness.Contains(t, harness.MustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.status.version.kubernetes}"), "v1.37.1")

	harness.MustKubectl(t, "", "label", "mcl", name, "env=prod", "--overwrite")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "mcl", "-l", "env=prod", "--show-labels"), name, "env=prod")
	harness.MustKubectl(t, "", "annotate", "mcl", name, "note=x")
	edit := harness.Hub(t).Kubectl(t.Context(), "edit", "mcl", name)
	edit.Env = append(edit.Env, `KUBE_EDITOR=sed -i s/env:.prod/env:\ edited/`)
	harness.Contains(t, string(harness.Must(edit.CombinedOutput())(t)), "edited")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.metadata.labels.env}"), "edited")

	if out, err := harness.Kubectl(t, strings.Replace(manifest, "spec:", "specs:", 1), "apply", "-f", "-"); err == nil || !strings.Contains(out, "specs") {
		t.Errorf("an unknown field: %s, %v", out, err)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "describe", "mcl", name), "Lease Duration Seconds")
	harness.Contains(t, harness.MustKubectl(t, "", "delete", "mcl", name, "--wait"), "deleted")
}

func TestKubectl_UsefulColumns(t *testing.T) {
	set, names := harness.NewFleet(t, 1)
	harness.MustKubectl(t, "", "patch", "mcl", names[0], "--type=merge", "-p", `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSelect"}]}}`)
	harness.MustKubectl(t, "", "patch", "mcl", names[0], "--subresource=status", "--type=merge", "-p", `{"status":{"version":{"kubernetes":"v1.37.1"},"conditions":[
		{"type":"ManagedClusterJoined","status":"True","reason":"ManagedClusterJoined","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"ManagedClusterConditionAvailable","status":"False","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	header := func(args ...string) ([]string, []string) {
		lines := strings.Split(strings.TrimSpace(harness.MustKubectl(t, "", append([]string{"get"}, args...)...)), "\n")
		return strings.Fields(lines[0]), strings.Fields(lines[len(lines)-1])
	}
	columns, row := header("csm", "--field-selector=spec.clusterSet="+set)
	if !slices.Equal(columns, []string{"SET", "CLUSTER", "ACCEPTED", "JOINED", "AVAILABLE", "AGE"}) || !slices.Equal(row[:5], []string{set, names[0], "false", "True", "False"}) {
		t.Errorf("got %v %v", columns, row)
	}
	columns, row = header("csm", "-o", "wide", "--field-selector=spec.clusterSet="+set)
	if !slices.Equal(columns[6:], []string{"VERSION", "SELECTED", "BY", "TAINTS"}) || !slices.Equal(row[6:], []string{"v1.37.1", "fleet=" + set, "a=b:NoSelect"}) {
		t.Errorf("got %v %v", columns, row)
	}
	columns, _ = header("mcl", names[0])
	if strings.Join(columns, " ") != "NAME HUB ACCEPTED MANAGED CLUSTER URLS JOINED AVAILABLE AGE" {
		t.Errorf("got %v", columns)
	}
	columns, _ = header("mclset", set)
	if strings.Join(columns, " ") != "NAME EMPTY SELECTOR AGE" {
		t.Errorf("got %v", columns)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "get", "csm", "--chunk-size=1"), names[0])
	harness.Contains(t, harness.MustKubectl(t, "", "get", "csm", names[0]+"."+set, "-o", "yaml"), "clusterSet: "+set, "kubernetesVersion: v1.37.1")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "csm", "-l", "fleet="+set, "-o", "name"), "clustersetmember.view.clusterhub.dev/"+names[0]+"."+set)
}

func TestKubectl_AuthCanI(t *testing.T) {
	who := harness.User(t, harness.LabelRight(harness.SetLabel+":mine"))
	harness.Contains(t, harness.MustKubectl(t, "", "auth", "can-i", "create", "managedclusters.cluster.open-cluster-management.io/"+harness.SetLabel+":mine", "--subresource=label", "--as", who), "yes")
	if out, err := harness.Kubectl(t, "", "auth", "can-i", "create", "managedclusters.cluster.open-cluster-management.io/"+harness.SetLabel+":other", "--subresource=label", "--as", who); err == nil {
		t.Errorf("the user can: %s", out)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "auth", "can-i", "list", "clustersetmembers", "--as", who, "--as-group=system:authenticated"), "yes")
	if out, err := harness.Kubectl(t, "", "get", "csm", "--as=system:anonymous"); err == nil {
		t.Errorf("a stranger may list members: %s", out)
	}
}

// TestKubectl_GetWatchShowsChanges runs kubectl get -w, which requests Tables.
func TestKubectl_GetWatchShowsChanges(t *testing.T) {
	set := harness.Unique("set")
	harness.NewSet(t, set)
	cmd := harness.Hub(t).Kubectl(t.Context(), "get", "csm", "--field-selector=spec.clusterSet="+set, "-w", "--output-watch-events", "--no-headers")
	var out harness.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	name := harness.Unique("cluster")
	harness.NewManagedCluster(t, name, map[string]string{harness.SetLabel: set})
	says := func(words ...string) {
		t.Helper()
		harness.Eventually(t, strings.Join(words, " "), func(context.Context) (bool, error) {
			return slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool {
				fields := strings.Fields(line)
				return len(fields) >= len(words) && slices.Equal(fields[:len(words)], words)
			}), nil
		})
	}
	says("ADDED", set, name)
	harness.MustKubectl(t, "", "label", "mcl", name, harness.SetLabel+"=default", "--overwrite")
	says("DELETED", set, name)
}

func TestKubectl_Wait(t *testing.T) {
	set := harness.Unique("set")
	harness.NewSet(t, set)
	harness.MustKubectl(t, "", "wait", "--for=condition=ClusterSetEmpty", "mclset/"+set, "--timeout="+harness.Timeout.String())
	cmd := harness.Hub(t).Kubectl(t.Context(), "wait", "--for=delete", "mclset/"+set, "--timeout="+harness.Timeout.String(), "-v=6") // the verbosity logs each request
	var out harness.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	harness.Eventually(t, "kubectl watches the set", func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "watch=true"), nil
	})
	if err := harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("kubectl wait --for=delete: %v\n%s", err, out.String())
	}
}

// TestKubectl_ImportsDecisions applies objects that were saved from CustomResourceDefinitions, and then their status.
func TestKubectl_ImportsDecisions(t *testing.T) {
	namespace := harness.NewNamespace(t)
	saved := `{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: PlacementDecision, metadata: {name: web-decision-1, namespace: ` + namespace + `,
  labels: {cluster.open-cluster-management.io/placement: web}}, status: {decisions: [{clusterName: c1, reason: ""}]}}`
	get := []string{"get", "placementdecisions", "-n", namespace, "-l", "cluster.open-cluster-management.io/placement=web", "-o", "jsonpath={.items[*].status}"}
	harness.MustKubectl(t, saved, "apply", "-f", "-")
	if out := harness.MustKubectl(t, "", get...); out != `{"decisions":[]}` {
		t.Errorf("applied without its status: %s", out)
	}
	harness.MustKubectl(t, saved, "apply", "--server-side", "--subresource=status", "-f", "-")
	if out := harness.MustKubectl(t, "", get...); out != `{"decisions":[{"clusterName":"c1","reason":""}]}` {
		t.Errorf("with its status: %s", out)
	}
}
