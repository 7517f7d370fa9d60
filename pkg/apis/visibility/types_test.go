// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Replicas of an older version read it while a hub is updated.
func TestRevision_StoredNamesAreStable(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(SchemeGroupVersion)
	data, err := runtime.Encode(codec, &Revision{ObjectMeta: metav1.ObjectMeta{Name: Name}, Digest: "d", ClusterRoles: 1, ClusterRoleBindings: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"AccessRevision","apiVersion":"access.clusterhub.dev/v1","metadata":{"name":"current"},"digest":"d","clusterRoles":1,"clusterRoleBindings":2}` + "\n"
	if string(data) != want {
		t.Errorf("stored as %swant      %s", data, want)
	}
	if obj, err := runtime.Decode(codec, []byte(want)); err != nil || obj.(*Revision).Digest != "d" {
		t.Errorf("read as %v, %v", obj, err)
	}
}
