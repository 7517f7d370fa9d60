// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersetbinding

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func binding(namespace, set string) *cluster.ManagedClusterSetBinding {
	return &cluster.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: set, Annotations: map[string]string{"note": "y"},
		},
		Spec: cluster.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.ManagedClusterSetBinding]{
		Kind:  Kind,
		Valid: func() *cluster.ManagedClusterSetBinding { return binding(registrytest.Namespace, "dev") },
		Fit:   func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = b.Name },
		Invalid: []func(*cluster.ManagedClusterSetBinding){
			func(b *cluster.ManagedClusterSetBinding) { b.Labels = map[string]string{"a": strings.Repeat("x", 64)} },
		},
		Change: func(b *cluster.ManagedClusterSetBinding) { b.Labels["env"] = "z" },
		InvalidChanges: []func(*cluster.ManagedClusterSetBinding){
			func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = "qa" },
			func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = "" },
		},
		OtherSpec: func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = "qa" },
		Matching:  []fields.Set{{"spec.clusterSet": "dev"}},
		Others:    []fields.Set{{"spec.clusterSet": "qa"}},
		Status: func(b *cluster.ManagedClusterSetBinding) {
			b.Status.Conditions = []metav1.Condition{{
				Type: "Bound", Status: "True", Reason: "ClusterSetBound", LastTransitionTime: metav1.Unix(1, 0),
			}}
		},
		BadStatus:  func(b *cluster.ManagedClusterSetBinding) { b.Status.Conditions[0].Reason = "" },
		Columns:    "Name/0 Bound/0 Age/0",
		Cells:      "dev|True|<unknown>",
		ShortNames: "mclsetbinding mclsetbindings",
	}.Run(t)
}

func newStorage(t *testing.T) *generic.Resource {
	t.Helper()
	return registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
}

func requestContext(r *generic.Resource, namespace string) context.Context {
	return genericregistrytest.NewNamespaceScopeContext(r.Store, namespace)
}

func TestStorage_Create(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s, "ns")
	created := registrytest.Create(t, ctx, s, binding("ns", "dev"))
	if created.Generation != 1 || created.Namespace != "ns" || created.UID == "" {
		t.Errorf("created %+v", created)
	}
	another, unnamed, unspecified := binding("ns", "qa"), binding("ns", ""), binding("ns", "qa")
	another.Spec.ClusterSet = "prod"
	unspecified.Spec.ClusterSet = ""
	for name, invalid := range map[string]*cluster.ManagedClusterSetBinding{
		"of another set": another, "without a name": unnamed, "without a set": unspecified,
	} {
		_, err := s.Create(ctx, invalid, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := s.Create(ctx, binding("ns", "dev"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: got %v", err)
	}
	_, err = s.Create(ctx, binding("other", "qa"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("into another namespace than the request's: got %v", err)
	}
	registrytest.Create(t, requestContext(s, "other"), s, binding("other", "dev"))
}

func TestStorage_ListsBindingsOfSet(t *testing.T) {
	s := newStorage(t)
	for _, b := range []*cluster.ManagedClusterSetBinding{binding("a", "dev"), binding("a", "qa"), binding("b", "dev")} {
		registrytest.Create(t, requestContext(s, b.Namespace), s, b)
	}
	for namespace, want := range map[string]string{"": "a/dev b/dev", "a": "a/dev", "c": ""} {
		list, err := s.List(requestContext(s, namespace), &metainternalversion.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.clusterSet", "dev"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range list.(*cluster.ManagedClusterSetBindingList).Items {
			names = append(names, b.Namespace+"/"+b.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("in %q: got %q, want %q", namespace, got, want)
		}
	}
}
