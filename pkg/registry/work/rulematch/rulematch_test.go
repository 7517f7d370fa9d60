// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rulematch

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

const manifests = `
- {apiVersion: v1, kind: Namespace, metadata: {name: kept}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: kept}}
- {apiVersion: v1, kind: Endpoints, metadata: {name: ends, namespace: kept}}
- {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: kept}}
- {apiVersion: example.com/v1, kind: Mouse, metadata: {name: jerry, namespace: kept}}
`

func specOf(t *testing.T, text string) *work.ManifestWorkSpec {
	t.Helper()
	var items []runtime.RawExtension
	if err := yaml.Unmarshal([]byte(text), &items); err != nil {
		t.Fatal(err)
	}
	spec := &work.ManifestWorkSpec{}
	for _, item := range items {
		spec.Workload.Manifests = append(spec.Workload.Manifests, work.Manifest{RawExtension: item})
	}
	return spec
}

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		rule   work.ResourceIdentifier
		exact  bool
		wanted string
	}{
		"cluster scope":               {rule: work.ResourceIdentifier{Resource: "namespaces", Name: "kept"}, exact: true},
		"namespaced":                  {rule: work.ResourceIdentifier{Resource: "configmaps", Namespace: "kept", Name: "settings"}},
		"wildcards":                   {rule: work.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "set*"}},
		"a plural like its singular":  {rule: work.ResourceIdentifier{Resource: "endpoints", Namespace: "kept", Name: "ends"}},
		"an irregular plural":         {rule: work.ResourceIdentifier{Group: "example.com", Resource: "mice", Namespace: "kept", Name: "jerry"}},
		"ies":                         {rule: work.ResourceIdentifier{Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: "kept", Name: "deny"}},
		"kind of another group":       {rule: work.ResourceIdentifier{Group: "example.com", Resource: "mouse", Namespace: "kept", Name: "jerry"}, wanted: `the resource is "mouse", expected the plural in lower case, "mouses" for the Mouse "jerry"`},
		"kind":                        {rule: work.ResourceIdentifier{Resource: "Namespace", Name: "kept"}, exact: true, wanted: `the resource is "Namespace", expected the plural in lower case, "namespaces" for the Namespace "kept"`},
		"another kind":                {rule: work.ResourceIdentifier{Resource: "secrets", Namespace: "kept", Name: "settings"}, wanted: `the resource is "secrets", expected the plural in lower case, "configmaps" for the ConfigMap "settings"`},
		"no wildcards in orphaning":   {rule: work.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "settings"}, exact: true, wanted: `no object of the group "" has the namespace "*" and the name "settings"`},
		"another group":               {rule: work.ResourceIdentifier{Group: "apps", Resource: "configmaps", Namespace: "kept", Name: "settings"}, wanted: `no object of the group "apps"`},
		"namespace of cluster scoped": {rule: work.ResourceIdentifier{Resource: "namespaces", Namespace: "kept", Name: "kept"}, wanted: "no object of"},
	} {
		spec, at := specOf(t, manifests), "spec.manifestConfigs[0].resourceIdentifier: "
		if test.exact {
			at = "spec.deleteOption.selectivelyOrphans.orphaningRules[0]: "
			spec.DeleteOption = &work.DeleteOption{SelectivelyOrphan: &work.SelectivelyOrphan{OrphaningRules: []work.OrphaningRule{work.OrphaningRule(test.rule)}}}
		} else {
			spec.ManifestConfigs = []work.ManifestConfigOption{{ResourceIdentifier: test.rule}}
		}
		got := strings.Join(Warnings(spec, field.NewPath("spec")), "\n")
		if test.wanted == "" && got != "" || test.wanted != "" && (!strings.HasPrefix(got, at) || !strings.Contains(got, test.wanted)) {
			t.Errorf("%s: got %q, expected %q", name, got, test.wanted)
		}
	}
}

// TestWarnings_AreBounded has more rules than are worth a warning each, and a manifest that cannot be read.
func TestWarnings_AreBounded(t *testing.T) {
	spec := specOf(t, manifests)
	spec.ManifestConfigs = make([]work.ManifestConfigOption, 1000)
	if got := len(Warnings(spec, field.NewPath("spec"))); got != maxWarnings {
		t.Errorf("got %d warnings, expected %d", got, maxWarnings)
	}
	spec.Workload.Manifests = append(spec.Workload.Manifests, work.Manifest{RawExtension: runtime.RawExtension{Raw: []byte("[]")}})
	if got := Warnings(spec, field.NewPath("spec")); len(got) > 0 {
		t.Errorf("got %q, expected none: a manifest that cannot be read may be matched", got)
	}
}

// TestAttack_SlowPatterns has as many manifests and rules as a work may have, with patterns that take long to compare.
func TestAttack_SlowPatterns(t *testing.T) {
	name, spec := strings.Repeat("a", 253), &work.ManifestWorkSpec{}
	rule := work.ResourceIdentifier{Resource: "configmaps", Name: strings.Repeat("*a", 126) + "b"}
	for range 1024 {
		spec.Workload.Manifests = append(spec.Workload.Manifests, work.Manifest{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`),
		}})
		spec.ManifestConfigs = append(spec.ManifestConfigs, work.ManifestConfigOption{ResourceIdentifier: rule})
	}
	if got := len(Warnings(spec, field.NewPath("spec"))); got != maxCompared/1024/254 {
		t.Errorf("%d rules were compared, expected %d", got, maxCompared/1024/254)
	}
}
