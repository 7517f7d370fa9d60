// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package appliedmanifestwork

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*work.AppliedManifestWork]{
		Kind: Kind,
		Valid: func() *work.AppliedManifestWork {
			return &work.AppliedManifestWork{
				ObjectMeta: metav1.ObjectMeta{Name: "hash-web"}, Spec: work.AppliedManifestWorkSpec{HubHash: "hash", ManifestWorkName: "web"},
			}
		},
		Invalid:        []func(*work.AppliedManifestWork){func(w *work.AppliedManifestWork) { w.Spec.HubHash = "" }},
		Change:         func(w *work.AppliedManifestWork) { w.Spec.AgentID = "a" },
		InvalidChanges: []func(*work.AppliedManifestWork){func(w *work.AppliedManifestWork) { w.Spec.ManifestWorkName = "" }},
		Status: func(w *work.AppliedManifestWork) {
			w.Status.AppliedResources = []work.AppliedManifestResourceMeta{{ResourceIdentifier: work.ResourceIdentifier{Resource: "pods", Name: "a"}, Version: "v1"}}
		},
		BadStatus: func(w *work.AppliedManifestWork) {
			w.Status.AppliedResources = make([]work.AppliedManifestResourceMeta, 1)
		},
		Columns: "Name/0 Age/0",
		Cells:   "hash-web|<unknown>",
	}.Run(t)
}
