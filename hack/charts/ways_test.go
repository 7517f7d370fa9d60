// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// eachWay runs a subtest for each way to install a chart.
func eachWay(t *testing.T, test func(t *testing.T, chart, namespace string, values map[string]any)) {
	t.Helper()
	for _, chart := range Names {
		for name, values := range ways(t, chart) {
			t.Run(chart+" "+name, func(t *testing.T) {
				t.Parallel()
				test(t, chart, namespaceOf(chart, name), values)
			})
		}
	}
}

func TestWays_Lint(t *testing.T) {
	eachWay(t, func(t *testing.T, chart, namespace string, values map[string]any) {
		for _, m := range lint.RunAll(Dir(root, chart), values, namespace).Messages {
			if m.Severity > support.InfoSev {
				t.Error(m)
			}
		}
		if files := must(Render(must(Load(root, chart))(t), namespace, values))(t); strings.TrimSpace(files["NOTES.txt"]) == "" {
			t.Error("no notes are printed")
		}
	})
}

// TestWays_CommonLabelChangesNothingElse: an upgrade by such a label restarts no pods, and changes no field that cannot change, such as the
// selector of a Deployment. A value that is another one each time, such as a random one, would be a change, too.
func TestWays_CommonLabelChangesNothingElse(t *testing.T) {
	const label = "example.com/second"
	eachWay(t, func(t *testing.T, chart, namespace string, values map[string]any) {
		all, _ := values["commonLabels"].(map[string]any)
		labelled := objects(t, chart, namespace, merged(values, map[string]any{"commonLabels": merged(map[string]any{label: "true"}, all)}))
		for _, o := range labelled {
			labels := o.GetLabels()
			if labels[label] != "true" && o.GetKind() == "Deployment" {
				t.Errorf("the Deployment %s does not have the label", o.GetName())
			}
			delete(labels, label)
			if len(labels) == 0 {
				labels = nil
			}
			o.SetLabels(labels)
		}
		if diff := cmp.Diff(byName(t, objects(t, chart, namespace, values), ""), byName(t, labelled, "")); diff != "" {
			t.Errorf("(-without the label +with it):\n%s", diff)
		}
	})
}

// TestWays_NamespacesAreRendered: each object is in the namespace of the release, in one that is rendered with it, or in one that the values name or that
// each cluster has.
func TestWays_NamespacesAreRendered(t *testing.T) {
	eachWay(t, func(t *testing.T, chart, namespace string, values map[string]any) {
		all := objects(t, chart, namespace, values)
		there := []string{"", namespace, "default", "kube-public", "kube-system"}
		if works, ok := values["works"].(map[string]any); ok {
			given, _, _ := unstructured.NestedStringSlice(works, "namespaces")
			there = append(there, given...)
		}
		for _, o := range all {
			if o.GetKind() == "Namespace" {
				there = append(there, o.GetName())
			}
		}
		for _, o := range all {
			if !slices.Contains(there, o.GetNamespace()) {
				t.Errorf("%s %s is in the namespace %s, and the others are %q", o.GetKind(), o.GetName(), o.GetNamespace(), there)
			}
		}
	})
}

// TestWays_UninstallRetainsOnlyData: uninstall deletes all but what holds data, and that, too, with keepData=false. TestKeepData says what is kept.
func TestWays_UninstallRetainsOnlyData(t *testing.T) {
	eachWay(t, func(t *testing.T, chart, namespace string, values map[string]any) {
		for _, o := range objects(t, chart, namespace, values) {
			holds := slices.Contains([]string{"CustomResourceDefinition", "Namespace", "PersistentVolumeClaim"}, o.GetKind())
			if o.GetAnnotations()[keep] != "" && (!holds || values["keepData"] == false) {
				t.Errorf("%s %s is kept", o.GetKind(), o.GetName())
			}
		}
	})
}
