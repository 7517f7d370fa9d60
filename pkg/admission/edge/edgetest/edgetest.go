// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgetest is shared by tests of the admission of edge deployments. It has stored services and their archives.
package edgetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// Services are the services of a hub.
type Services struct {
	rest.Lister
	// Cached are the services in the cache, and Stored those in the store. If Cached is nil, both are Stored.
	Cached, Stored []*edge.EdgeService
	// Err is the error of all reads.
	Err error
	// Lists counts the lists of the store.
	Lists int
}

// List implements rest.Lister, for lists of one name in one namespace.
func (s *Services) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	url, found := options.FieldSelector.RequiresExactMatch("spec.url")
	namespace := request.NamespaceValue(ctx)
	if !found || namespace == "" {
		return nil, errors.New("the list is not one of a service in a namespace")
	}
	from := s.Stored
	if options.ResourceVersion == "0" && s.Cached != nil {
		from = s.Cached
	}
	if options.ResourceVersion == "" {
		s.Lists++
	}
	list := &edge.EdgeServiceList{}
	for _, one := range from {
		if one.Namespace == namespace && one.Spec.URL == url {
			list.Items = append(list.Items, *one)
		}
	}
	return list, s.Err
}

// Service returns a version of a service in a namespace, with the status that the server sets for its archive, after changes.
func Service(namespace, url, version, arch string, packed []byte, changes ...func(*edge.EdgeService)) *edge.EdgeService {
	s := &edge.EdgeService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: edge.ServiceName(url, version, arch)},
		Spec:       edge.EdgeServiceSpec{URL: url, Version: version, Arch: arch},
	}
	if packed != nil {
		s.Spec.ClusterDeployment = &edge.ClusterDeployment{OperatorYamlArchive: packed}
		read, err := archive.ReadPacked(packed)
		if err != nil {
			panic(err)
		}
		status := model.ServiceStatus(&read.Contents)
		if err := v1alpha1.Convert_v1alpha1_EdgeServiceStatus_To_edge_EdgeServiceStatus(&status, &s.Status, nil); err != nil {
			panic(err)
		}
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// Public makes a service available to all namespaces.
func Public(s *edge.EdgeService) { s.Spec.Public = true }

// Archive packs a Deployment with this name and namespace, which may be empty, and more manifests.
func Archive(name, namespace string, more ...string) []byte {
	manifest := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\n", name)
	if namespace != "" {
		manifest += "  namespace: " + namespace + "\n"
	}
	for _, m := range more {
		manifest += "---\n" + m
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	header := &tar.Header{Name: "app.yaml", Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(manifest))}
	if err := errors.Join(files.WriteHeader(header), write(files, manifest), files.Close(), zipped.Close()); err != nil {
		panic(err)
	}
	return packed.Bytes()
}

func write(files *tar.Writer, text string) error {
	_, err := files.Write([]byte(text))
	return err
}

// Policy returns a policy in a namespace that names versions of a service of an organization.
func Policy(namespace, org, url string, versions ...string) *edge.DeploymentPolicy {
	return &edge.DeploymentPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
		Spec:       edge.DeploymentPolicySpec{Service: edge.PolicyService{Name: url, Org: org, ServiceVersions: Versions(versions...)}},
	}
}

// Pattern returns a pattern in a namespace.
func Pattern(namespace string, services ...edge.PatternService) *edge.DeploymentPattern {
	return &edge.DeploymentPattern{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
		Spec:       edge.DeploymentPatternSpec{Services: services},
	}
}

// Versions returns versions without a priority.
func Versions(list ...string) []edge.ServiceVersion {
	var versions []edge.ServiceVersion
	for _, v := range list {
		versions = append(versions, edge.ServiceVersion{Version: v})
	}
	return versions
}
