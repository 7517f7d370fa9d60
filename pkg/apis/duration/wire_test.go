// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package duration_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	openmcp "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	work "github.com/clusterhub/clusterhub/pkg/apis/work/install"
)

// Objects come back with their durations after the way that a server takes them: to the internal version, a copy, and back.
func TestDurations_OfObjectsRoundTrip(t *testing.T) {
	scheme := runtime.NewScheme()
	openmcp.Install(scheme)
	work.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	for _, object := range []string{
		`{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessRequest","spec":{"ttl":"DURATION"}}`,
		`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet","spec":{"placementRefs":[
			{"name":"a","rolloutStrategy":{"type":"All","all":{"minSuccessTime":"DURATION"}}},
			{"name":"b","rolloutStrategy":{"type":"Progressive","progressive":{"minSuccessTime":"DURATION"}}},
			{"name":"c","rolloutStrategy":{"type":"ProgressivePerGroup","progressivePerGroup":{"minSuccessTime":"DURATION"}}}]}}`,
	} {
		for _, written := range []string{"5m", "24h", "300s"} {
			internal, kind, err := codecs.UniversalDeserializer().Decode([]byte(strings.ReplaceAll(object, "DURATION", written)), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			version := kind.GroupVersion()
			internal, err = scheme.ConvertToVersion(internal, schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal})
			if err != nil {
				t.Fatal(err)
			}
			data, err := runtime.Encode(codecs.LegacyCodec(version), internal.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Count(object, "DURATION"); strings.Count(string(data), `:"`+written+`"`) != want {
				t.Errorf("%s is not %d times in %s", written, want, data)
			}
		}
	}
}
