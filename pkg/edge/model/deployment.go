// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

// Qualified returns the name of a policy or pattern as it is used in decisions, and in spec.pattern of a node.
func Qualified(namespace, name string) string { return namespace + "/" + name }

// Wanted is a service that a policy or a pattern deploys, for any architecture.
type Wanted struct {
	// Namespace is the namespace of its EdgeServices, and URL their spec.url.
	Namespace, URL string
	Versions       []string
}

// Matches reports whether an EdgeService is one of the versions of this service that are deployed.
func (w *Wanted) Matches(s *edge.Service) bool {
	if s.Org != w.Namespace || s.Name != w.URL {
		return false
	}
	for _, version := range w.Versions {
		if s.Version == version {
			return true
		}
	}
	return false
}

// WantedByPolicy returns the service of a policy.
func WantedByPolicy(namespace string, spec *api.DeploymentPolicySpec) Wanted {
	return wanted(namespace, spec.Service.Org, spec.Service.Name, spec.Service.ServiceVersions)
}

// WantedByPattern returns the services of a pattern, in order. A service may occur several times, for several architectures.
func WantedByPattern(namespace string, spec *api.DeploymentPatternSpec) []Wanted {
	list := make([]Wanted, len(spec.Services))
	for i := range spec.Services {
		s := &spec.Services[i]
		list[i] = wanted(namespace, s.ServiceOrgid, s.ServiceUrl, s.ServiceVersions)
	}
	return list
}

func wanted(namespace, org, url string, versions []api.ServiceVersion) Wanted {
	if org == "" {
		org = namespace
	}
	w := Wanted{Namespace: org, URL: url}
	for i := range versions {
		w.Versions = append(w.Versions, versions[i].Version)
	}
	return w
}

// Policy returns a policy of this namespace, with the services that it names.
func Policy(namespace, name string, spec *api.DeploymentPolicySpec, services []edge.Service) edge.DeploymentSpec {
	w := WantedByPolicy(namespace, spec)
	return edge.DeploymentSpec{
		Name: Qualified(namespace, name), Org: w.Namespace, Service: w.URL, Arch: spec.Service.Arch,
		ClusterNamespace: spec.Service.ClusterNamespace, Choices: choices(spec.Service.ServiceVersions), Policy: policy(&spec.Policy),
		Services: w.of(services),
	}
}

// PatternServices returns the services of a pattern of this namespace, each as a deployment, in order.
func PatternServices(namespace, name string, spec *api.DeploymentPatternSpec, services []edge.Service) []edge.DeploymentSpec {
	list := make([]edge.DeploymentSpec, len(spec.Services))
	for i, w := range WantedByPattern(namespace, spec) {
		list[i] = edge.DeploymentSpec{
			Name: Qualified(namespace, name), Org: w.Namespace, Service: w.URL, Pattern: true, Arch: spec.Services[i].ServiceArch,
			ClusterNamespace: spec.ClusterNamespace, Choices: choices(spec.Services[i].ServiceVersions), Services: w.of(services),
		}
	}
	return list
}

// Pattern returns a pattern of this namespace as a whole, for Pattern.Check. That finds the same object in two services only if their contents were
// read from the archives: a status lists no namespaced objects.
func Pattern(namespace string, spec *api.DeploymentPatternSpec, services []edge.Service) edge.Pattern {
	p := edge.Pattern{ClusterNamespace: spec.ClusterNamespace}
	for i, w := range WantedByPattern(namespace, spec) {
		p.Services = append(p.Services, edge.PatternService{Org: w.Namespace, Name: w.URL, Arch: spec.Services[i].ServiceArch, Services: w.of(services)})
	}
	return p
}

// of returns the services that match.
func (w *Wanted) of(services []edge.Service) []edge.Service {
	var list []edge.Service
	for i := range services {
		if w.Matches(&services[i]) {
			list = append(list, services[i])
		}
	}
	return list
}

func choices(versions []api.ServiceVersion) []edge.Choice {
	list := make([]edge.Choice, len(versions))
	for i := range versions {
		list[i].Version = versions[i].Version
		if p := versions[i].Priority; p != nil {
			list[i].Priority = int(p.PriorityValue)
		}
	}
	return list
}
