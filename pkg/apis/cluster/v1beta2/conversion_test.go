// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

const (
	annotation = "clusterhub.dev/v1beta1-cluster-selector"
	setKey     = "cluster.open-cluster-management.io/clusterset"
	regionKey  = "info.open-cluster-management.io/region"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() { install.Install(scheme) }

// read returns an object as a client of a version gets it.
func read[T any](t *testing.T, gv schema.GroupVersion, set *cluster.ManagedClusterSet) *T {
	t.Helper()
	before := set.DeepCopy()
	data, err := runtime.Encode(codecs.LegacyCodec(gv), set)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, set) {
		t.Fatalf("reading changed what is stored:\n%+v\n%+v", before, set)
	}
	result := new(T)
	if err := json.Unmarshal(data, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// write returns the object that the server makes of one that a client sends, with decoding, defaulting and conversion.
func write(t *testing.T, object any) *cluster.ManagedClusterSet {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	result, err := runtime.Decode(codecs.UniversalDecoder(cluster.SchemeGroupVersion), data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return result.(*cluster.ManagedClusterSet)
}

func inV1beta1(t *testing.T, set *cluster.ManagedClusterSet) *v1beta1.ManagedClusterSet {
	return read[v1beta1.ManagedClusterSet](t, v1beta1.SchemeGroupVersion, set)
}

func inV1beta2(t *testing.T, set *cluster.ManagedClusterSet) *v1beta2.ManagedClusterSet {
	return read[v1beta2.ManagedClusterSet](t, v1beta2.SchemeGroupVersion, set)
}

func exclusive(name, key, value string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"note": "mine"}},
		Spec: cluster.ManagedClusterSetSpec{ClusterSelector: cluster.ManagedClusterSelector{
			SelectorType:   cluster.ExclusiveLabel,
			ExclusiveLabel: &cluster.ManagedClusterLabel{Key: key, Value: value},
		}},
	}
}

func TestV1beta2_UnrelatedEditLosesNothing(t *testing.T) {
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, clusterfuzzer.Funcs), rand.NewSource(rand.Int63()), codecs)
	for range 500 {
		stored := &cluster.ManagedClusterSet{}
		filler.Fill(stored)
		stored.TypeMeta = metav1.TypeMeta{}
		want := inV1beta1(t, stored)

		seen := inV1beta2(t, stored)
		if seen.Annotations == nil {
			seen.Annotations = map[string]string{}
		}
		seen.Annotations["edited"] = "yes"
		seen.Spec.ManagedNamespaces = append(seen.Spec.ManagedNamespaces, v1beta2.ManagedNamespaceConfig{Name: "more"})

		got := inV1beta1(t, write(t, seen))
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, "edited", "yes")
		want.Spec.ManagedNamespaces = append(want.Spec.ManagedNamespaces, v1beta1.ManagedNamespaceConfig{Name: "more"})
		if !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("v1beta1 -> v1beta2 -> v1beta1\ngot  %+v\nwant %+v", got, want)
		}
	}
}

func TestV1beta2_ShowsExclusiveLabelAsSelector(t *testing.T) {
	for name, c := range map[string]struct {
		set  *cluster.ManagedClusterSet
		want v1beta2.ManagedClusterSelector
	}{
		"another key": {exclusive("apac", regionKey, "apac"), v1beta2.ManagedClusterSelector{
			SelectorType:  "LabelSelector",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{regionKey: "apac"}},
		}},
		"the set's own name": {exclusive("dev", setKey, "dev"), v1beta2.ManagedClusterSelector{SelectorType: "ExclusiveClusterSetLabel"}},
		"another set's name": {exclusive("dev", setKey, "qa"), v1beta2.ManagedClusterSelector{
			SelectorType:  "LabelSelector",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{setKey: "qa"}},
		}},
	} {
		seen := inV1beta2(t, c.set)
		if !equality.Semantic.DeepEqual(seen.Spec.ClusterSelector, c.want) {
			t.Errorf("%s: shown as %+v, want %+v", name, seen.Spec.ClusterSelector, c.want)
		}
		if seen.Annotations[annotation] == "" || seen.Annotations["note"] != "mine" {
			t.Errorf("%s: annotations %v", name, seen.Annotations)
		}
		if back := write(t, withKind(seen)); !equality.Semantic.DeepEqual(back, c.set) {
			t.Errorf("%s: written back as\n%+v, want\n%+v", name, back, c.set)
		}
	}
}

func withKind(set *v1beta2.ManagedClusterSet) *v1beta2.ManagedClusterSet {
	set.APIVersion, set.Kind = v1beta2.SchemeGroupVersion.String(), "ManagedClusterSet"
	return set
}

func TestV1beta2_SelectorChangeOverridesAnnotation(t *testing.T) {
	matches := func(labels map[string]string) v1beta2.ManagedClusterSelector {
		return v1beta2.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
	}
	for name, wanted := range map[string]v1beta2.ManagedClusterSelector{
		"another value":  matches(map[string]string{regionKey: "emea"}),
		"another key":    matches(map[string]string{setKey: "apac"}),
		"one more label": matches(map[string]string{regionKey: "apac", "env": "x"}),
		"everything":     matches(nil),
		"nothing":        {SelectorType: "LabelSelector"},
		"one expression": {SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{regionKey: "apac"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpExists}},
		}},
		"the set's name": {SelectorType: "ExclusiveClusterSetLabel"},
	} {
		seen := inV1beta2(t, exclusive("apac", regionKey, "apac"))
		seen.Spec.ClusterSelector = wanted
		stored := write(t, withKind(seen))
		if _, kept := stored.Annotations[annotation]; kept {
			t.Errorf("%s: the annotation is stored", name)
		}
		again := inV1beta2(t, stored)
		if !equality.Semantic.DeepEqual(again.Spec.ClusterSelector, wanted) {
			t.Errorf("%s: became %+v", name, again.Spec.ClusterSelector)
		}
		if _, kept := again.Annotations[annotation]; kept {
			t.Errorf("%s: the annotation is still shown", name)
		}
	}
}

func TestV1beta2_DroppedAnnotationConvertsSet(t *testing.T) {
	seen := inV1beta2(t, exclusive("apac", regionKey, "apac"))
	delete(seen.Annotations, annotation)
	if got := write(t,
		withKind(seen)).Spec.ClusterSelector; got.SelectorType != cluster.LabelSelector || got.ExclusiveLabel != nil {
		t.Errorf("got %+v", got)
	}
}

func TestV1beta2_InvalidAnnotationIsDropped(t *testing.T) {
	for _, text := range []string{
		"", "x", "null", "{}", "[]", `{"selectorType":"ExclusiveLabel"}`, `{"selectorType":"LabelSelector","labelSelector":{}}`,
		`{"exclusiveLabel":{"key":"` + regionKey + `","value":"apac"}}`,
	} {
		set := &v1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: "apac", Annotations: map[string]string{annotation: text}},
			Spec: v1beta2.ManagedClusterSetSpec{ClusterSelector: v1beta2.ManagedClusterSelector{
				SelectorType:  "LabelSelector",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{regionKey: "apac"}},
			}},
		}
		got := write(t, withKind(set))
		if got.Spec.ClusterSelector.SelectorType != cluster.LabelSelector || len(got.Annotations) > 0 {
			t.Errorf("%q: became %+v with %v", text, got.Spec.ClusterSelector, got.Annotations)
		}
	}
}

// Otherwise a v1beta2 client that edits something else would make the set claim a label.
func TestV1beta2_DoesNotShowForgedAnnotation(t *testing.T) {
	forged := inV1beta2(t, exclusive("apac", regionKey, "apac")).Annotations
	stored := &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "apac", Annotations: maps.Clone(forged)},
		Spec: cluster.ManagedClusterSetSpec{ClusterSelector: cluster.ManagedClusterSelector{
			SelectorType:  cluster.LabelSelector,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{regionKey: "apac"}},
		}},
	}
	seen := inV1beta2(t, stored)
	if _, shown := seen.Annotations[annotation]; shown || seen.Annotations["note"] != "mine" {
		t.Errorf("shows %v", seen.Annotations)
	}
	if got := write(t, withKind(seen)).Spec.ClusterSelector; !equality.Semantic.DeepEqual(got,
		stored.Spec.ClusterSelector) {
		t.Errorf("became %+v", got)
	}
}

func TestBothVersions_ReadEverySelectorSpelling(t *testing.T) {
	for _, spelling := range []string{"", "LegacyClusterSetLabel", "ExclusiveClusterSetLabel"} {
		for version, want := range map[string]string{"v1beta1": "LegacyClusterSetLabel", "v1beta2": "ExclusiveClusterSetLabel"} {
			sent := map[string]any{
				"apiVersion": cluster.GroupName + "/" + version, "kind": "ManagedClusterSet",
				"metadata": map[string]any{"name": "dev"},
				"spec":     map[string]any{"clusterSelector": map[string]any{"selectorType": spelling}},
			}
			stored := write(t, sent)
			if got := stored.Spec.ClusterSelector.SelectorType; got != cluster.ExclusiveClusterSetLabel {
				t.Errorf("%s %q: stored as %q", version, spelling, got)
			}
			shown := string(inV1beta1(t, stored).Spec.ClusterSelector.SelectorType)
			if version == "v1beta2" {
				shown = string(inV1beta2(t, stored).Spec.ClusterSelector.SelectorType)
			}
			if shown != want {
				t.Errorf("%s %q: shown as %q, want %q", version, spelling, shown, want)
			}
		}
	}
}

func TestBothVersions_EmptySpecSelectsByName(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		for _, spec := range []string{
			`"spec":{}`, `"spec":null`, `"status":{"conditions":null}`, `"spec":{"clusterSelector":null}`,
			`"spec":{"clusterSelector":{"selectorType":null,"labelSelector":null},"managedNamespaces":null}`,
		} {
			stored := write(t, json.RawMessage(`{"apiVersion":"`+cluster.GroupName+`/`+version+`","kind":"ManagedClusterSet",
				"metadata":{"name":"dev","labels":null,"annotations":null},`+spec+`}`))
			want := cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}
			if !equality.Semantic.DeepEqual(stored.Spec.ClusterSelector, want) {
				t.Errorf("%s %s: got %+v", version, spec, stored.Spec.ClusterSelector)
			}
		}
	}
}

func TestFieldSelectors_OfSetsAndBindings(t *testing.T) {
	for _, gv := range []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1beta2.SchemeGroupVersion} {
		for _, c := range []struct{ kind, label, value, want string }{
			{"ManagedClusterSet", "metadata.name", "dev", "dev"},
			{"ManagedClusterSet", "spec.clusterSelector.exclusiveLabel.key", regionKey, regionKey},
			{"ManagedClusterSet", "spec.clusterSelector.exclusiveLabel.value", "apac", "apac"},
			{"ManagedClusterSet", "spec.clusterSelector.selectorType", "", "ExclusiveClusterSetLabel"},
			{"ManagedClusterSet", "spec.clusterSelector.selectorType", "LegacyClusterSetLabel", "ExclusiveClusterSetLabel"},
			{"ManagedClusterSet", "spec.clusterSelector.selectorType", "ExclusiveClusterSetLabel", "ExclusiveClusterSetLabel"},
			{"ManagedClusterSet", "spec.clusterSelector.selectorType", "ExclusiveLabel", "ExclusiveLabel"},
			{"ManagedClusterSet", "spec.clusterSelector.selectorType", "LabelSelector", "LabelSelector"},
			{"ManagedClusterSetBinding", "metadata.name", "dev", "dev"},
			{"ManagedClusterSetBinding", "metadata.namespace", "ns", "ns"},
			{"ManagedClusterSetBinding", "spec.clusterSet", "dev", "dev"},
		} {
			label, value, err := scheme.ConvertFieldLabel(gv.WithKind(c.kind), c.label, c.value)
			if err != nil || label != c.label || value != c.want {
				t.Errorf("%s %s=%s: got %s=%s, %v", gv, c.label, c.value, label, value, err)
			}
		}
		for _, kind := range []string{"ManagedClusterSet", "ManagedClusterSetBinding"} {
			if _, _, err := scheme.ConvertFieldLabel(gv.WithKind(kind), "status.conditions", ""); err == nil {
				t.Errorf("%s %s: status.conditions is a field selector", gv, kind)
			}
		}
	}
}
