// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// mostListed is how many namespaces, and how many objects, the status of a service lists.
const mostListed = 64

// Service is a service of this namespace, with what is in its archive: nil where that is not known, and then no cluster gets it.
func Service(namespace string, spec *api.EdgeServiceSpec, contents *archive.Contents) edge.Service {
	return edge.Service{
		Org: namespace, Name: spec.URL, Version: spec.Version, Arch: spec.Arch,
		ForClusters: spec.ClusterDeployment != nil, ForDevices: spec.Deployment != nil,
		Contents: contents, Policy: policy(spec.Policy),
	}
}

// StoredService is a service that the hub has, with what its status says of the archive.
func StoredService(s *api.EdgeService) edge.Service {
	return Service(s.Namespace, &s.Spec, Contents(&s.Status))
}

// WithoutArchive takes the archive out of a service, for a cache: nothing that is decided needs it. It stays a service for clusters.
func WithoutArchive(s *api.EdgeService) {
	if s.Spec.ClusterDeployment != nil {
		s.Spec.ClusterDeployment = &api.ClusterDeployment{}
	}
}

// ReadArchive reads the archive of a service. It is nil for a service that has nothing for clusters.
func ReadArchive(spec *api.EdgeServiceSpec) (*archive.Archive, error) {
	if spec.ClusterDeployment == nil {
		return nil, nil
	}
	return archive.ReadPacked(spec.ClusterDeployment.OperatorYamlArchive)
}

// ServiceStatus is what the status of a service says of its archive, nil if there is none.
func ServiceStatus(c *archive.Contents) api.EdgeServiceStatus {
	if c == nil {
		return api.EdgeServiceStatus{}
	}
	status := api.EdgeServiceStatus{Objects: int32(len(c.Objects))}
	status.EmbeddedNamespace, _ = c.Embedded()
	status.Namespaces = append(status.Namespaces, c.Namespaces[:min(len(c.Namespaces), mostListed)]...)
	none := c.ClusterScoped()
	for _, o := range none[:min(len(none), mostListed)] {
		status.ClusterScoped = append(status.ClusterScoped, api.ClusterScopedObject{Group: o.Group, Kind: o.Kind, Name: o.Name})
	}
	status.More = int32(len(c.Namespaces) - len(status.Namespaces) + len(none) - len(status.ClusterScoped))
	if c.More {
		// What was not in the lists that these come from. How many that were is not known any more.
		status.More++
	}
	return status
}

// Contents are what the status of a service says of its archive, as far as decisions depend on it: the namespaces, and the objects that are
// in none. They are nil where no archive was read. Where the lists were too long, More says so, and nothing is decided as if they were whole.
func Contents(status *api.EdgeServiceStatus) *archive.Contents {
	if status.Objects <= 0 {
		// An archive without objects is refused.
		return nil
	}
	return &archive.Contents{Objects: objects(status.ClusterScoped), Namespaces: status.Namespaces, More: status.More > 0}
}
