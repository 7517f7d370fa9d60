// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// Bind creates a set of the clusters with the label set=<set>, and binds it to a namespace.
func (h *FakeHub) Bind(namespace, set string) {
	h.t.Helper()
	s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: set}}
	s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": set}}}
	b := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}}
	b.Spec.ClusterSet = set
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(s), &clusterv1beta2.ManagedClusterSet{}); err != nil {
		h.Make(s)
	}
	h.Make(b)
}

// Node creates an accepted cluster of a set, and its node.
func (h *FakeHub) Node(name, set string, change func(*edgev1alpha1.EdgeNode)) {
	h.t.Helper()
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"set": set}}}
	c.Spec.HubAcceptsClient = true
	h.Make(c)
	scoped := true
	n := &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster", Name: name, UID: c.UID}}},
		Spec:   edgev1alpha1.EdgeNodeSpec{NodeType: edgev1alpha1.NodeTypeCluster},
		Status: edgev1alpha1.EdgeNodeStatus{Arch: "amd64", Namespace: "agent", NamespaceScoped: &scoped}}
	if change != nil {
		change(n)
	}
	h.Make(n)
}

// Service creates a version of a service with this manifest.
func (h *FakeHub) Service(namespace, url, version, manifest string, change func(*edgev1alpha1.EdgeService)) {
	h.t.Helper()
	s := &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: edge.ServiceName(url, version, "amd64")}}
	s.Spec = edgev1alpha1.EdgeServiceSpec{URL: url, Version: version, Arch: "amd64",
		ClusterDeployment: &edgev1alpha1.ClusterDeployment{OperatorYamlArchive: Archive(h.t, manifest)}}
	if change != nil {
		change(s)
	}
	a, err := archive.ReadPacked(s.Spec.ClusterDeployment.OperatorYamlArchive)
	if err != nil {
		h.t.Fatal(err)
	}
	s.Status = model.ServiceStatus(&a.Contents)
	h.Make(s)
}

// Archive packs a manifest.
func Archive(t *testing.T, manifest string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	entries := tar.NewWriter(zipped)
	err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "all.yaml", Mode: 0o644, Size: int64(len(manifest))})
	if err == nil {
		_, err = entries.Write([]byte(manifest))
	}
	if err := errors.Join(err, entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Policy returns a policy that deploys versions of a service, in the order of their precedence.
func Policy(namespace, name, url string, versions ...string) *edgev1alpha1.DeploymentPolicy {
	p := &edgev1alpha1.DeploymentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Service.Name = url
	for i, version := range versions {
		p.Spec.Service.ServiceVersions = append(p.Spec.Service.ServiceVersions, edgev1alpha1.ServiceVersion{Version: version,
			Priority: &edgev1alpha1.Priority{PriorityValue: int32(i + 1)}})
	}
	return p
}
