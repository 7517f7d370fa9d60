// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
)

// FuzzSetVersions: a set as clients of v1beta2 write it is the same after it was stored in v1beta1, and selects the same
// clusters; what is shown of its selector can be read again.
func FuzzSetVersions(f *testing.F) {
	for _, spec := range []string{
		`{}`, `null`, `{"clusterSelector":{"selectorType":"ExclusiveClusterSetLabel"}}`,
		`{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"NotIn","values":["d","e"]}]}}}`,
		`{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchExpressions":[{"key":"","operator":"Gt"}]}}}`,
		`{"clusterSelector":{"selectorType":"LegacyClusterSetLabel"},"managedNamespaces":[{"name":"x"}]}`,
		`{"clusterSelector":{"selectorType":"ExclusiveLabel","exclusiveLabel":{"key":"a","value":"b"}}}`,
	} {
		f.Add("set", spec)
	}
	f.Add("&&&0", "{}")
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	v1, v2 := codecs.LegacyCodec(v1beta1.SchemeGroupVersion), codecs.LegacyCodec(v1beta2.SchemeGroupVersion)
	f.Fuzz(func(t *testing.T, name, spec string) {
		if !utf8.ValidString(name) {
			return // JSON has no such text
		}
		written := `{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSet","metadata":{},"spec":` + spec + `}`
		object, err := runtime.Decode(v2, []byte(written))
		if err != nil {
			return
		}
		set, ok := object.(*cluster.ManagedClusterSet)
		if !ok {
			return
		}
		set.Name = name
		before, err := runtime.Encode(v1, set)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := runtime.Decode(v1, before)
		if err != nil {
			t.Fatalf("%v of %s", err, before)
		}
		after, err := runtime.Encode(v2, stored)
		if err != nil {
			t.Fatal(err)
		}
		again, err := runtime.Decode(v2, after)
		if err != nil || !equality.Semantic.DeepEqual(set, again) {
			t.Errorf("%s became %s: %v", written, after, err)
		}

		selects, err := selector.For(set)
		later, laterErr := selector.For(again.(*cluster.ManagedClusterSet))
		if (err == nil) != (laterErr == nil) || err == nil && selects.String() != later.String() {
			t.Fatalf("%s selects %v, %v, and later %v, %v", written, selects, err, later, laterErr)
		}
		if err != nil || len(validation.ValidateManagedClusterSet(set)) > 0 {
			return // the API refuses it
		}
		if _, text := selector.Describe(set); text != "<none>" {
			if shown, err := labels.Parse(text); err != nil || shown.String() != text {
				t.Errorf("%s is shown as %q: %v", written, text, err)
			}
		}
	})
}
