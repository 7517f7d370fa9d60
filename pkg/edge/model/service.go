// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// maxListed is the maximum number of namespaces, and of objects, that the status of a service lists.
const maxListed = 64

// Service returns a service of this namespace, with the contents of its archive: nil if they are not known, and then it is deployed to no cluster.
func Service(namespace string, spec *api.EdgeServiceSpec, contents *archive.Contents) edge.Service {
	return edge.Service{
		Org: namespace, Name: spec.URL, Version: spec.Version, Arch: spec.Arch,
		ForClusters: spec.ClusterDeployment != nil, ForDevices: spec.Deployment != nil,
		Contents: contents, Policy: policy(spec.Policy),
	}
}

// StoredService returns a service of the hub, with the contents of the archive from its status.
func StoredService(s *api.EdgeService) edge.Service {
	return Service(s.Namespace, &s.Spec, Contents(&s.Status))
}

// WithoutArchive removes the archive from a service, for a cache: decisions do not need it. It remains a service for clusters.
func WithoutArchive(s *api.EdgeService) {
	if s.Spec.ClusterDeployment != nil {
		s.Spec.ClusterDeployment = &api.ClusterDeployment{}
	}
}

// ReadArchive reads the archive of a service. It returns nil for a service that cannot be deployed to clusters.
func ReadArchive(spec *api.EdgeServiceSpec) (*archive.Archive, error) {
	if spec.ClusterDeployment == nil {
		return nil, nil
	}
	return archive.ReadPacked(spec.ClusterDeployment.OperatorYamlArchive)
}

// ServiceStatus returns the status of a service with these contents of its archive, which may be nil.
func ServiceStatus(c *archive.Contents) api.EdgeServiceStatus {
	if c == nil {
		return api.EdgeServiceStatus{}
	}
	status := api.EdgeServiceStatus{Objects: int32(len(c.Objects))}
	status.EmbeddedNamespace, _ = c.Embedded()
	status.Namespaces = append(status.Namespaces, c.Namespaces[:min(len(c.Namespaces), maxListed)]...)
	none := c.ClusterScoped()
	for _, o := range none[:min(len(none), maxListed)] {
		status.ClusterScoped = append(status.ClusterScoped, api.ClusterScopedObject{Group: o.Group, Kind: o.Kind, Name: o.Name})
	}
	status.More = int32(len(c.Namespaces) - len(status.Namespaces) + len(none) - len(status.ClusterScoped))
	if c.More {
		// These contents were truncated before. By how much is not known any more.
		status.More++
	}
	return status
}

// Contents returns the contents of the archive from the status of a service, as far as decisions depend on them: the namespaces, and the
// cluster-scoped objects. They are nil if no archive was read. If the lists were truncated, More is set, and no decision treats them as complete.
func Contents(status *api.EdgeServiceStatus) *archive.Contents {
	if status.Objects <= 0 {
		// An archive without objects is rejected.
		return nil
	}
	return &archive.Contents{Objects: objects(status.ClusterScoped), Namespaces: status.Namespaces, More: status.More > 0}
}
