// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/clusterhub/clusterhub/hack/charts"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func namespaceOf(chart, way string) string {
	switch {
	case chart == charts.Hub:
		return charts.HubNamespace
	case way == "namespace":
		return "team-a"
	}
	return charts.AgentNamespace
}

const label = "example.com/second"

// givenCABundle is the CA bundle of ci/own-certificate-values.yaml.
const givenCABundle = "-----BEGIN CERTIFICATE-----\n"

// lives are the releases that TestWays installs, upgrades, rolls back and uninstalls. Each has the values of several ways, so that what these ways
// deploy has been deployed on a real cluster. The first of a chart keeps its data.
var lives = map[string][][]string{
	charts.Hub: {
		// What the chart has besides the hub itself. Here hub-apiserver writes the caBundles, which a rollback must not lose.
		{"default", "eks", "monitored", "operator", "provider", "ui"},
		// Most values of the hub itself. Here the chart writes the caBundles, and uninstall deletes the data.
		{"own-certificate", "strict"},
	},
	charts.Agent: {
		// Rights in namespaces of others.
		{"default", "gitops"},
		// Most values of the agent, and rights everywhere.
		{"awsirsa", "edge"},
	},
}

// dryRunOnly are the ways that are in no life, each with the reason. TestWays applies them as all others, by dry runs.
var dryRunOnly = map[string]map[string]string{
	charts.Hub:   {"external-etcd": "has one object less than default, and other fields of a Deployment"},
	charts.Agent: {"namespace": "contradicts all other ways, and TestDocs_HelmPage installs it"},
}

// TestLives_CoverAllWays: a new way is in one of the lives, or there is a reason why it is not.
func TestLives_CoverAllWays(t *testing.T) {
	t.Parallel()
	releases := 0
	for _, chart := range charts.Names {
		var have []string
		for _, of := range lives[chart] {
			have = append(have, of...)
			releases++
		}
		if len(have) == 0 {
			t.Errorf("%s has no life", chart)
		}
		have = slices.Sorted(slices.Values(slices.AppendSeq(have, maps.Keys(dryRunOnly[chart]))))
		if all := slices.Sorted(maps.Keys(ways(t, chart))); !slices.Equal(have, all) {
			t.Errorf("%s: the ways of lives and dryRunOnly are %q, and the files ci/*-values.yaml %q", chart, have, all)
		}
	}
	if releases > 4 {
		t.Errorf("there are %d lives: each takes processor time, and 4 are enough", releases)
	}
}

// TestWays: all ways to install are installed with what the real server says of each field, upgraded, rolled back and uninstalled, several of them
// in one release; and each of them alone is applied by a dry run.
func TestWays(t *testing.T) {
	cluster := harness.Hub(t)
	for _, name := range []string{"team-a", "team-b"} {
		namespace(t, cluster, name)
	}
	othersKinds(t, cluster)
	for _, chart := range charts.Names {
		for _, of := range lives[chart] {
			t.Run(chart+"/"+strings.Join(of, ","), func(t *testing.T) {
				all, values := ways(t, chart), map[string]any{}
				for _, way := range of {
					values = util.MergeTables(all[way], values)
				}
				live(newHelm(t, cluster, chart, namespaceOf(chart, "")), values)
			})
		}
	}
	made := sets.New[string]()
	for _, chart := range charts.Names {
		for way, values := range ways(t, chart) {
			t.Run("dry run/"+chart+"/"+way, func(t *testing.T) { dryRun(newHelm(t, cluster, chart, namespaceOf(chart, way)), values, made) })
		}
	}
	// No release has them.
	namespaces := harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces()
	for name := range made {
		if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	for name := range made {
		gone(t, cluster, name)
	}
}

// dryRun has the server say what it would make of each object of a chart. This needs the namespaces of the chart, which it adds to made.
func dryRun(h *helm, values map[string]any, made sets.Set[string]) {
	h.Helper()
	files := harness.Must(charts.Render(harness.Must(charts.Load(harness.Root, h.chart))(h.T), h.namespace, values))(h.T)
	delete(files, "NOTES.txt")
	all, err := h.config.KubeClient.Build(strings.NewReader(strings.Join(slices.Collect(maps.Values(files)), "\n---\n")), true)
	if err != nil {
		h.Fatal(err)
	}
	namespace(h.T, h.cluster, h.namespace)
	for _, o := range all {
		if o.Mapping.GroupVersionKind.Kind == "Namespace" {
			namespace(h.T, h.cluster, o.Name)
			made.Insert(o.Name)
		}
	}
	if _, err := h.config.KubeClient.Create(all, kube.ClientCreateOptionDryRun(true)); err != nil {
		h.Error(err)
	}
}

func live(h *helm, values map[string]any) {
	first, err := h.install(values)
	if err != nil {
		h.Fatal(err)
	}
	made := h.there(first.Manifest)
	if want := strings.Count(first.Manifest, "\nkind: "); len(made) < want {
		h.Errorf("%d objects are there, want %d: %v", len(made), want, made)
	}
	bundles := bundled(h)
	// With a certificate of the user, hub-apiserver leaves the APIServices alone, and so does cert-manager.
	if !slices.Contains(slices.Collect(maps.Values(bundles)), givenCABundle) {
		bundles = setCABundles(h)
	}

	more := maps.Clone(values)
	more["commonLabels"] = map[string]any{label: "true"}
	if _, err := h.upgrade(more); err != nil {
		h.Fatal(err)
	}
	h.labelled("true")
	if err := h.rollback(); err != nil {
		h.Fatal(err)
	}
	h.labelled("")
	wantCABundles(h, bundles)

	if err := h.uninstall(); err != nil {
		h.Fatal(err)
	}
	var kept []string
	for _, name := range h.there(first.Manifest) {
		if values["keepData"] != false && (strings.HasPrefix(name, "PersistentVolumeClaim ") || strings.HasPrefix(name, "Namespace ") ||
			strings.HasPrefix(name, "CustomResourceDefinition ")) {
			continue
		}
		kept = append(kept, name)
	}
	if len(kept) > 0 {
		h.Errorf("uninstall leaves %v", kept)
	}
	if left := bundled(h); len(left) > 0 {
		h.Errorf("uninstall leaves the APIServices %v", left)
	}
	none(h)
	// The next one begins without what this one has kept, such as a volume of another size.
	clean(h)
}

// none waits until each namespace that was deleted has gone.
func none(h *helm) {
	h.Helper()
	harness.Eventually(h.T, "no namespace hangs", func(ctx context.Context) (bool, error) {
		all, err := harness.Kube(h.T, h.cluster.AdminConfig()).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var hang []string
		for _, n := range all.Items {
			if n.DeletionTimestamp != nil {
				hang = append(hang, fmt.Sprintf("%s: %v", n.Name, n.Status.Conditions))
			}
		}
		return harness.Holds(len(hang) == 0, hang)
	})
}

// clean removes what releases of the chart keep. Releases of the other chart may be there.
func clean(h *helm) {
	h.Helper()
	if h.chart == charts.Hub {
		// Namespaces and kinds may stay: a release of the same name goes on with them.
		harness.MustKubectlOf(h.T, h.cluster, "", "delete", "persistentvolumeclaims", "-n", charts.HubNamespace, "--all")
		return
	}
	harness.MustKubectlOf(h.T, h.cluster, "", "delete", "customresourcedefinitions", "--ignore-not-found", "appliedmanifestworks.work.open-cluster-management.io")
	services := aggregator.NewForConfigOrDie(h.cluster.AdminConfig()).ApiregistrationV1().APIServices()
	harness.Eventually(h.T, "kube-apiserver does not serve the records any more", func(ctx context.Context) (bool, error) {
		s, err := services.Get(ctx, recordsService, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, errors.Join(err, fmt.Errorf("its APIService says %v", s.Spec))
	})
}

// labelled wants the label of the second revision on what every chart has.
func (h *helm) labelled(want string) {
	h.Helper()
	all, err := harness.Kube(h.T, h.cluster.AdminConfig()).AppsV1().Deployments(h.namespace).List(h.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		h.Fatalf("there are %d Deployments, %v", len(all.Items), err)
	}
	for _, d := range all.Items {
		if d.Labels[label] != want {
			h.Errorf("the Deployment %s has the labels %v, want %q", d.Name, d.Labels, want)
		}
		if _, found := d.Spec.Template.Labels[label]; found {
			h.Errorf("pods of %s have a label of all objects, so they would be started anew", d.Name)
		}
	}
}

// bundled are the hub's APIServices and their caBundles. The chart of the agent has none; those of the hub beside it are not its own.
func bundled(h *helm) map[string]string {
	h.Helper()
	if h.chart != charts.Hub {
		return nil
	}
	list, err := aggregator.NewForConfigOrDie(h.cluster.AdminConfig()).ApiregistrationV1().APIServices().List(h.Context(), metav1.ListOptions{})
	if err != nil {
		h.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range list.Items {
		if s.Spec.Service != nil && s.Spec.Service.Name == "hub-apiserver" {
			found[s.Name] = string(s.Spec.CABundle)
		}
	}
	return found
}

// setCABundles does as hub-apiserver does.
func setCABundles(h *helm) map[string]string {
	h.Helper()
	client := aggregator.NewForConfigOrDie(h.cluster.AdminConfig()).ApiregistrationV1().APIServices()
	for name := range bundled(h) {
		patch := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":%q},"spec":{"caBundle":"Y2E="}}`, name)
		if _, err := client.Patch(h.Context(), name, types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hub-apiserver", Force: new(bool)}); err != nil {
			h.Fatal(err)
		}
	}
	return bundled(h)
}

func wantCABundles(h *helm, want map[string]string) {
	h.Helper()
	if (h.chart == charts.Hub) != (len(want) > 0) {
		h.Errorf("%s has %d APIServices", h.chart, len(want))
	}
	got := bundled(h)
	for name, bundle := range want {
		if bundle == "" || got[name] != bundle {
			h.Errorf("the APIService %s has the caBundle %q, and had %q", name, got[name], bundle)
		}
	}
}

// TestUninstall_UnblocksNamespaceDeletion verifies that no APIServices remain after uninstall: an APIService without a server blocks the deletion of every
// namespace of the cluster.
func TestUninstall_UnblocksNamespaceDeletion(t *testing.T) {
	cluster := harness.Hub(t)
	h := newHelm(t, cluster, charts.Hub, charts.HubNamespace)
	harness.Must(h.install(nil))(t)
	client := harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces()
	const name = "unrelated"
	namespace(t, cluster, name)
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the namespace waits for the hub's APIs", func(ctx context.Context) (bool, error) {
		found, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range found.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionDiscoveryFailure && c.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, fmt.Errorf("it says %v", found.Status.Conditions)
	})
	if err := h.uninstall(); err != nil {
		t.Fatal(err)
	}
	gone(t, cluster, name)
	clean(h)
}

// TestRefused: neither a value that there is not, nor a field, becomes a revision.
func TestRefused(t *testing.T) {
	h := newHelm(t, harness.Hub(t), charts.Agent, "refused")
	harness.Must(h.install(nil))(t)
	for want, values := range map[string]map[string]any{
		"additional properties 'replicaz' not allowed": {"replicaz": 2},
		"dataa": {"extraObjects": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "dataa": map[string]any{}}}},
	} {
		if _, err := h.upgrade(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", values, err, want)
		}
	}
	if err := h.uninstall(); err != nil {
		t.Fatal(err)
	}
}
