// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

func TestFieldSelectors_OfMembers(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	gvk := v1alpha1.SchemeGroupVersion.WithKind("ClusterSetMember")
	for _, label := range []string{"metadata.name", "spec.clusterSet", "spec.cluster"} {
		if l, v, err := scheme.ConvertFieldLabel(gvk, label, "x"); err != nil || l != label || v != "x" {
			t.Errorf("%s: got %q, %q, %v", label, l, v, err)
		}
	}
	if _, _, err := scheme.ConvertFieldLabel(gvk, "status.joined", "True"); err == nil {
		t.Error("status.joined: is a field selector")
	}
}
