// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzParse verifies that a valid configuration is complete: it does not change when it is marshalled and parsed again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"scheduler: {purposeMappings: {p: {template: {spec: {profile: x, tenancy: Exclusive}}}}}",
		"scheduler: {scope: Namespaced, strategy: Random, selectors: {clusters: {matchLabels: {a: b}}}, purposeMappings: {p: {tenancyCount: 2, template: {spec: {profile: x, tenancy: Shared}}}}}",
		"scheduler: {policy: {accessRequests: [{name: a, expression: 'true'}]}}",
		"scheduler: {policy: {accessRequests: [{name: a, expression: roleRefs.all(r}]}}",
		"scheduler: {purposeMappings: {p: }}", "scheduler: 7", "other: {}", "", "- a", "scheduler: {unknown: 1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := parse(data)
		if err != nil {
			return
		}
		if _, err := parse(data, data); err != nil {
			t.Errorf("twice: %v", err)
		}
		text, err := yaml.Marshal(map[string]any{"scheduler": config})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(text)
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		if second, err := yaml.Marshal(map[string]any{"scheduler": again}); err != nil || !reflect.DeepEqual(text, second) {
			t.Errorf("%v:\n%s\nbecame\n%s", err, text, second)
		}
	})
}
