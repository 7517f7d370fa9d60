// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
)

func TestFirst_SkipsDefaultObjects(t *testing.T) {
	object := func(apiVersion, kind, name string) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name},
		}
	}
	usual := []runtime.Object{
		object("v1", "ServiceAccount", "default"), object("v1", "ConfigMap", "kube-root-ca.crt"),
		object("v1", "Event", "started"), object("events.k8s.io/v1", "Event", "started"),
		object("rbac.authorization.k8s.io/v1", "RoleBinding", "inspector"),
		object("metrics.k8s.io/v1", "PodMetrics", "computed"),
	}
	all := []string{"list", "delete", "get"}
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "serviceaccounts", Kind: "ServiceAccount", Verbs: all}, {Name: "configmaps", Kind: "ConfigMap", Verbs: all},
			{Name: "events", Kind: "Event", Verbs: all}, {Name: "secrets", Kind: "Secret", Verbs: all},
			{Name: "bindings", Kind: "Binding", Verbs: []string{"create"}},
		}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "events", Kind: "Event", Verbs: all}}},
		{GroupVersion: "metrics.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "podmetrics", Kind: "PodMetrics", Verbs: []string{"get", "list"}}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "rolebindings", Kind: "RoleBinding", Verbs: all}}},
		{GroupVersion: "work.open-cluster-management.io/v1", APIResources: []metav1.APIResource{{Name: "manifestworks", Kind: "ManifestWork", Verbs: all}}},
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		objects []runtime.Object
		binding string
		failed  error
		want    string
	}{
		"nothing else": {binding: "inspector"},
		// A binding of another owner, whatever its name.
		"a binding": {want: "rolebindings.rbac.authorization.k8s.io inspector"},
		"a secret":  {binding: "inspector", objects: []runtime.Object{object("v1", "Secret", "token")}, want: "secrets token"},
		"another service account": {
			binding: "inspector", objects: []runtime.Object{object("v1", "ServiceAccount", "agent")}, want: "serviceaccounts agent",
		},
		"work": {
			binding: "inspector", objects: []runtime.Object{object("work.open-cluster-management.io/v1", "ManifestWork", "w")},
			want: "manifestworks.work.open-cluster-management.io w",
		},
		"a group that does not answer": {failed: errors.New("unavailable")},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Contents{
				Binding:   test.binding,
				resources: func() ([]*metav1.APIResourceList, error) { return served, test.failed },
				objects:   metadatafake.NewSimpleMetadataClient(scheme, slices.Concat(usual, test.objects)...),
			}
			got, err := c.First(t.Context(), "c1")
			if got != test.want || (err != nil) != (test.failed != nil) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}
