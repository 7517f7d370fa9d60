// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

const repository = "../.."

// TestEdgeExample_Services verifies that the archives of the example contain its manifests.
func TestEdgeExample_Services(t *testing.T) {
	var services []string
	for _, document := range documents(t, edgeExample(repository, "20-services.yaml")) {
		var service edgev1alpha1.EdgeService
		if err := syaml.UnmarshalStrict(document, &service); err != nil {
			t.Fatal(err)
		}
		if want := edge.ServiceName(service.Spec.URL, service.Spec.Version, service.Spec.Arch); service.Name != want {
			t.Errorf("the service %s has to be called %s", service.Name, want)
		}
		services = append(services, service.Spec.URL)
		name, packed := unpacked(t, service.Spec.ClusterDeployment.OperatorYamlArchive)
		manifest := load(t, edgeExample(repository, "manifests", service.Spec.URL+".yaml"))
		if name != service.Spec.URL+".yaml" || !bytes.Equal(packed, manifest) {
			t.Errorf("the archive of %s has %s with\n%s\nand its manifest is\n%s\nPack it by the command in 20-services.yaml", service.Name, name, packed, manifest)
		}
		if _, err := archive.ReadPacked(service.Spec.ClusterDeployment.OperatorYamlArchive); err != nil {
			t.Errorf("%s: %v", service.Name, err)
		}
	}
	if want := []string{"till", "sensors"}; !slices.Equal(services, want) {
		t.Errorf("the services are %v, want %v", services, want)
	}
}

// TestEdgeExample_Teams verifies that the users who install the agents have permissions in the agents' namespaces.
func TestEdgeExample_Teams(t *testing.T) {
	var teams []string
	for _, document := range documents(t, edgeExample(repository, "cluster", "teams.yaml")) {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			RoleRef  struct{ Name string }
			Subjects []struct{ Name string }
		}
		if err := syaml.Unmarshal(document, &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == "RoleBinding" {
			teams = append(teams, o.Metadata.Namespace+" "+o.RoleRef.Name+" "+o.Subjects[0].Name)
		}
	}
	for _, agent := range edgeAgents {
		if agent.user != "" && !slices.Contains(teams, agent.namespace+" admin "+agent.user) {
			t.Errorf("%s is not an admin of %s: %v", agent.user, agent.namespace, teams)
		}
		if !strings.HasPrefix(agent.name, edgeName) {
			t.Errorf("%s does not specify its cluster", agent.name)
		}
	}
	if len(teams) != len(edgeAgents)-1 {
		t.Errorf("the teams are %v", teams)
	}
}

// unpacked returns the one file of an archive.
func unpacked(t *testing.T, packed []byte) (name string, data []byte) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	entries := tar.NewReader(zipped)
	header, err := entries.Next()
	if err != nil {
		t.Fatal(err)
	}
	data, err = io.ReadAll(entries)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entries.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more after %s: %v", header.Name, err)
	}
	return header.Name, data
}

func load(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func documents(t *testing.T, file string) (all [][]byte) {
	t.Helper()
	r := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(load(t, file))))
	defer r.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := r.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(buffer[:n]))
	}
}
