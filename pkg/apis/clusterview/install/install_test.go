// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
)

// One type is in two groups: each writes it as its own, and what is stored stays what it was.
func TestSet_EncodedInRequestedGroup(t *testing.T) {
	scheme := runtime.NewScheme()
	clusterinstall.Install(scheme)
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	for _, version := range []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1beta2.SchemeGroupVersion, v1alpha1.SchemeGroupVersion} {
		codec := codecs.LegacyCodec(version)
		set := &cluster.ManagedClusterSet{}
		set.Name = "a"
		data, err := runtime.Encode(codec, set)
		if err != nil {
			t.Fatal(err)
		}
		back, gvk, err := codec.Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*cluster.ManagedClusterSet).Name; got != "a" || *gvk != version.WithKind("ManagedClusterSet") {
			t.Errorf("%s: came back as %s of %s", version, got, gvk)
		}
	}
}

func TestCluster_EncodedInRequestedGroup(t *testing.T) {
	scheme := runtime.NewScheme()
	clusterinstall.Install(scheme)
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	for _, version := range []schema.GroupVersion{clusterv1.SchemeGroupVersion, v1.SchemeGroupVersion} {
		codec := codecs.LegacyCodec(version)
		data, err := runtime.Encode(codec, &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		back, gvk, err := codec.Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*cluster.ManagedCluster).Name; got != "a" || *gvk != version.WithKind("ManagedCluster") {
			t.Errorf("%s: came back as %s of %s", version, got, gvk)
		}
	}
}

func TestFieldSelectors_OfClusters(t *testing.T) {
	scheme := runtime.NewScheme()
	clusterinstall.Install(scheme)
	Install(scheme)
	gvk := v1.SchemeGroupVersion.WithKind("ManagedCluster")
	if label, value, err := scheme.ConvertFieldLabel(gvk, "spec.hubAcceptsClient", "true"); err != nil || label != "spec.hubAcceptsClient" || value != "true" {
		t.Errorf("got %q, %q, %v", label, value, err)
	}
	if _, _, err := scheme.ConvertFieldLabel(gvk, "metadata.namespace", "x"); err == nil {
		t.Error("metadata.namespace is a field selector")
	}
}

func TestFieldSelectors_OfSets(t *testing.T) {
	scheme := runtime.NewScheme()
	clusterinstall.Install(scheme)
	Install(scheme)
	gvk := v1alpha1.SchemeGroupVersion.WithKind("ManagedClusterSet")
	if _, value, err := scheme.ConvertFieldLabel(gvk, "spec.clusterSelector.selectorType", "LegacyClusterSetLabel"); err != nil ||
		value != string(cluster.ExclusiveClusterSetLabel) {
		t.Errorf("got %q, %v", value, err)
	}
	if _, _, err := scheme.ConvertFieldLabel(gvk, "status.anything", "x"); err == nil {
		t.Error("status.anything is a field selector")
	}
}
