// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func revision() *work.ManifestWorkReplicaSetRevision {
	return &work.ManifestWorkReplicaSetRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: registrytest.Namespace, Name: work.RevisionName("web", "1234", 2),
			Labels: map[string]string{work.ReplicaSetLabel: registrytest.Namespace + ".web"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "work.open-cluster-management.io/v1alpha1", Kind: "ManifestWorkReplicaSet", Name: "web", UID: "1234",
			}},
		},
		Spec: work.ManifestWorkReplicaSetRevisionSpec{
			ReplicaSet: "web", ReplicaSetUID: "1234", Revision: 2,
			ManifestWorkTemplate: work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: []work.Manifest{
				{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}},
			}}},
		},
	}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*work.ManifestWorkReplicaSetRevision]{
		Kind:  Kind,
		Valid: revision,
		Fit: func(r *work.ManifestWorkReplicaSetRevision) {
			if _, labelled := r.Labels[work.ReplicaSetLabel]; labelled {
				r.Labels[work.ReplicaSetLabel] = r.Namespace + ".web"
			}
		},
		Invalid: []func(*work.ManifestWorkReplicaSetRevision){
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.Revision = 0 },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.ReplicaSet = "" },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.ReplicaSet = strings.Repeat("a", 64) },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.ReplicaSetUID = "" },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Labels = nil },
			func(r *work.ManifestWorkReplicaSetRevision) { r.OwnerReferences = nil },
			func(r *work.ManifestWorkReplicaSetRevision) { r.OwnerReferences[0].UID = "another" },
			func(r *work.ManifestWorkReplicaSetRevision) { r.OwnerReferences[0].Kind = "ConfigMap" },
		},
		// The spec is immutable.
		Change: func(r *work.ManifestWorkReplicaSetRevision) { r.Annotations = map[string]string{"a": "b"} },
		InvalidChanges: []func(*work.ManifestWorkReplicaSetRevision){
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.Revision = 3 },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.ReplicaSetUID = "another" },
			func(r *work.ManifestWorkReplicaSetRevision) { r.Spec.ManifestWorkTemplate.Workload.Manifests = nil },
		},
		Columns:    "Name/0 ReplicaSet/0 Revision/0 Manifests/0 Age/0",
		Cells:      work.RevisionName("web", "1234", 2) + "|web|2|1|<unknown>",
		ShortNames: "mwrsr",
	}.Run(t)
}
