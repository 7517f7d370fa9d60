// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What people type.

func contains(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
}

func TestKubectl_ListsTheResources(t *testing.T) {
	out := mustKubectl(t, "", "api-resources")
	for _, want := range [][]string{
		{"managedclusters", "mcl,mcls", "cluster.open-cluster-management.io/v1", "false", "ManagedCluster"},
		{"managedclustersets", "mclset,mclsets", "cluster.open-cluster-management.io/v1beta2", "false", "ManagedClusterSet"},
		{"managedclustersetbindings", "mclsetbinding,mclsetbindings", "cluster.open-cluster-management.io/v1beta2", "true", "ManagedClusterSetBinding"},
		{"clustersetmembers", "csm", "view.clusterhub.dev/v1alpha1", "false", "ClusterSetMember"},
	} {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return slices.Equal(strings.Fields(line), want) }) {
			t.Errorf("no line %v in:\n%s", want, out)
		}
	}
	contains(t, mustKubectl(t, "", "api-versions"), "cluster.open-cluster-management.io/v1beta1")
}

// model is what an OpenAPI document says of a type.
type model struct {
	Description string
	Properties  map[string]struct{ Description string }
}

// models are those of the OpenAPI document of a group and version, which the front lists a moment after it serves the group.
func models(t *testing.T, groupVersion string) map[string]model {
	t.Helper()
	index := struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}{}
	eventually(t, "the OpenAPI document of "+groupVersion, func(context.Context) (bool, error) {
		data, err := kubectl(t, "", "get", "--raw", "/openapi/v3")
		if err == nil {
			err = json.Unmarshal([]byte(data), &index)
		}
		return index.Paths["apis/"+groupVersion].ServerRelativeURL != "", err
	})
	document := struct {
		Components struct{ Schemas map[string]model }
	}{}
	data := mustKubectl(t, "", "get", "--raw", index.Paths["apis/"+groupVersion].ServerRelativeURL)
	if err := json.Unmarshal([]byte(data), &document); err != nil {
		t.Fatal(err)
	}
	return document.Components.Schemas
}

// TestKubectl_ExplainsEveryField walks through the schema: a field without a description teaches nothing.
func TestKubectl_ExplainsEveryField(t *testing.T) {
	for _, group := range []string{"cluster.open-cluster-management.io/v1", "cluster.open-cluster-management.io/v1beta1",
		"cluster.open-cluster-management.io/v1beta2", "view.clusterhub.dev/v1alpha1"} {
		ours := 0
		for name, schema := range models(t, group) {
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
	contains(t, mustKubectl(t, "", "explain", "managedcluster.spec.taints.effect"), "NoSelectIfNew", "PreferNoSelect")
	contains(t, mustKubectl(t, "", "explain", "managedclusterset.spec.clusterSelector", "--api-version=cluster.open-cluster-management.io/v1beta1"), "exclusiveLabel", "selectorType")
	contains(t, mustKubectl(t, "", "explain", "csm.status"), "accepted", "joined", "selectedBy")
	contains(t, mustKubectl(t, "", "explain", "managedcluster", "--recursive"), "leaseDurationSeconds")
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
	name := unique("kubectl")
	t.Cleanup(func() {
		_ = hub.Kubectl(context.WithoutCancel(t.Context()), "delete", "mcl", name, "--ignore-not-found").Run()
	})
	manifest := strings.ReplaceAll(clusterYAML, "NAME", name)
	contains(t, mustKubectl(t, manifest, "apply", "--dry-run=server", "-f", "-"), "created (server dry run)")
	if out, err := kubectl(t, "", "get", "mcl", name); err == nil {
		t.Errorf("a dry run has created it: %s", out)
	}
	mustKubectl(t, manifest, "create", "-f", "-")
	contains(t, mustKubectl(t, manifest, "apply", "-f", "-"), "configured")
	contains(t, mustKubectl(t, manifest, "apply", "-f", "-"), "unchanged")
	mustKubectl(t, manifest, "diff", "-f", "-")
	changed := strings.Replace(manifest, "30", "45", 1)
	out, err := kubectl(t, changed, "diff", "-f", "-")
	if err == nil {
		t.Error("kubectl diff sees no difference")
	}
	contains(t, out, "-  leaseDurationSeconds: 30", "+  leaseDurationSeconds: 45")
	contains(t, mustKubectl(t, changed, "apply", "-f", "-"), "configured")

	// Server side, by two managers: what one of them owns, the other does not take without force.
	mustKubectl(t, changed, "apply", "--server-side", "--force-conflicts", "--field-manager=one", "-f", "-")
	out, err = kubectl(t, strings.Replace(changed, "45", "50", 1), "apply", "--server-side", "--field-manager=two", "-f", "-")
	if err == nil {
		t.Error("a conflict between two managers went unnoticed")
	}
	contains(t, out, "conflict", "leaseDurationSeconds")
	mustKubectl(t, strings.Replace(changed, "45", "50", 1), "apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-")
	contains(t, mustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.spec.leaseDurationSeconds}"), "50")

	for kind, patch := range map[string]string{
		"merge":     `{"spec":{"leaseDurationSeconds":61}}`,
		"strategic": `{"spec":{"leaseDurationSeconds":62}}`,
		"json":      `[{"op":"replace","path":"/spec/leaseDurationSeconds","value":63}]`,
	} {
		contains(t, mustKubectl(t, "", "patch", "mcl", name, "--type", kind, "-p", patch), "patched")
	}
	mustKubectl(t, "", "patch", "mcl", name, "--subresource=status", "--type=merge", "-p", `{"status":{"version":{"kubernetes":"v1.37.1"}}}`)
	contains(t, mustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.status.version.kubernetes}"), "v1.37.1")

	mustKubectl(t, "", "label", "mcl", name, "env=prod", "--overwrite")
	contains(t, mustKubectl(t, "", "get", "mcl", "-l", "env=prod", "--show-labels"), name, "env=prod")
	mustKubectl(t, "", "annotate", "mcl", name, "note=x")
	t.Setenv("KUBE_EDITOR", `sed -i s/env:.prod/env:\ edited/`)
	contains(t, mustKubectl(t, "", "edit", "mcl", name), "edited")
	contains(t, mustKubectl(t, "", "get", "mcl", name, "-o", "jsonpath={.metadata.labels.env}"), "edited")

	if out, err := kubectl(t, strings.Replace(manifest, "spec:", "specs:", 1), "apply", "-f", "-"); err == nil || !strings.Contains(out, "specs") {
		t.Errorf("an unknown field: %s, %v", out, err)
	}
	contains(t, mustKubectl(t, "", "describe", "mcl", name), "Lease Duration Seconds")
	contains(t, mustKubectl(t, "", "delete", "mcl", name, "--wait"), "deleted")
}

func TestKubectl_ColumnsAreThoseThatPeopleNeed(t *testing.T) {
	set, names := newFleet(t, 1)
	mustKubectl(t, "", "patch", "mcl", names[0], "--type=merge", "-p", `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSelect"}]}}`)
	mustKubectl(t, "", "patch", "mcl", names[0], "--subresource=status", "--type=merge", "-p", `{"status":{"version":{"kubernetes":"v1.37.1"},"conditions":[
		{"type":"ManagedClusterJoined","status":"True","reason":"ManagedClusterJoined","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"ManagedClusterConditionAvailable","status":"False","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	header := func(args ...string) ([]string, []string) {
		lines := strings.Split(strings.TrimSpace(mustKubectl(t, "", append([]string{"get"}, args...)...)), "\n")
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
	if strings.Join(columns, " ") != "NAME EMPTY AGE" {
		t.Errorf("got %v", columns)
	}
	contains(t, mustKubectl(t, "", "get", "csm", "--chunk-size=1"), names[0])
	contains(t, mustKubectl(t, "", "get", "csm", names[0]+"."+set, "-o", "yaml"), "clusterSet: "+set, "kubernetesVersion: v1.37.1")
	contains(t, mustKubectl(t, "", "get", "csm", "-l", "fleet="+set, "-o", "name"), "clustersetmember.view.clusterhub.dev/"+names[0]+"."+set)
}

func TestKubectl_AuthCanI(t *testing.T) {
	who := user(t, labelRight(setLabel+":mine"))
	contains(t, mustKubectl(t, "", "auth", "can-i", "create", "managedclusters.cluster.open-cluster-management.io/"+setLabel+":mine", "--subresource=label", "--as", who), "yes")
	if out, err := kubectl(t, "", "auth", "can-i", "create", "managedclusters.cluster.open-cluster-management.io/"+setLabel+":other", "--subresource=label", "--as", who); err == nil {
		t.Errorf("the user can: %s", out)
	}
	contains(t, mustKubectl(t, "", "auth", "can-i", "list", "clustersetmembers", "--as", who, "--as-group=system:authenticated"), "yes")
	if out, err := kubectl(t, "", "get", "csm", "--as=system:anonymous"); err == nil {
		t.Errorf("a stranger may list members: %s", out)
	}
}

// TestKubectl_GetWatchShowsJoinsAndLeaves runs kubectl get -w, which asks for Tables.
func TestKubectl_GetWatchShowsJoinsAndLeaves(t *testing.T) {
	set := unique("set")
	newSet(t, set)
	cmd := hub.Kubectl(t.Context(), "get", "csm", "--field-selector=spec.clusterSet="+set, "-w", "--output-watch-events", "--no-headers")
	var out synced
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	name := unique("cluster")
	newCluster(t, name, map[string]string{setLabel: set})
	says := func(words ...string) {
		t.Helper()
		eventually(t, strings.Join(words, " "), func(context.Context) (bool, error) {
			return slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool {
				fields := strings.Fields(line)
				return len(fields) >= len(words) && slices.Equal(fields[:len(words)], words)
			}), nil
		})
	}
	says("ADDED", set, name)
	mustKubectl(t, "", "label", "mcl", name, setLabel+"=default", "--overwrite")
	says("DELETED", set, name)
}

func TestKubectl_Wait(t *testing.T) {
	set := unique("set")
	newSet(t, set)
	mustKubectl(t, "", "wait", "--for=condition=ClusterSetEmpty", "mclset/"+set, "--timeout=30s")
	cmd := hub.Kubectl(t.Context(), "wait", "--for=delete", "mclset/"+set, "--timeout=30s", "-v=6") // which tells each request
	var out synced
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "kubectl watches the set", func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "watch=true"), nil
	})
	if err := admin(t).ClusterV1beta2().ManagedClusterSets().Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("kubectl wait --for=delete: %v\n%s", err, out.String())
	}
}
