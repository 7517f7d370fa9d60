// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// AnyArch stands for all architectures. So does an empty text, but not as the architecture of a service.
const AnyArch = "*"

// Service is one version of a service for one architecture.
type Service struct {
	Org, Name, Version, Arch string
	// ForClusters is whether the service can be deployed to nodes that are clusters, and ForDevices whether it can be deployed to devices.
	ForClusters, ForDevices bool
	// Contents are the contents of its archive. They are nil if the archive cannot be read.
	Contents *archive.Contents
	Policy   Policy
}

// Choice is a version that a deployment names.
type Choice struct {
	Version string
	// Priority is lower for versions that are tried earlier. Versions without one (0) are last.
	Priority int
}

// DeploymentSpec is a policy, or a pattern with one of its services, as its author wrote it.
type DeploymentSpec struct {
	// Name is the name of the policy or pattern, qualified by the namespace if there are several.
	Name string
	// Org and Service identify the service that is deployed. All versions of it are one service.
	Org, Service string
	// Pattern is whether it is a pattern.
	Pattern bool
	// Arch is the architecture of its nodes; AnyArch or empty means all.
	Arch             string
	ClusterNamespace string
	Choices          []Choice
	// Policy is only for policies.
	Policy Policy
	// Services are all existing versions of the service, for all architectures.
	Services []Service
}

// Deployment is a parsed deployment. It never changes, and can be used by several goroutines concurrently.
type Deployment struct {
	spec        DeploymentSpec
	constraints *constraint.Constraints
	candidates  []candidate
}

// candidate is a version that is tried.
type candidate struct {
	version  string
	services []compiled
}

// compiled is a service as this deployment deploys it.
type compiled struct {
	*Service
	constraints *constraint.Constraints
	// properties are those of deployment and service, and the built-in ones.
	properties *constraint.Properties
	// clusterObjects are the objects that a namespace-scoped agent cannot create.
	clusterObjects []archive.Object
}

// NewDeployment parses a deployment and its services. An error reports what cannot be parsed; such a deployment deploys nothing.
func NewDeployment(spec DeploymentSpec) (*Deployment, error) {
	spec.Services = slices.Clone(spec.Services)
	d := &Deployment{spec: spec}
	var err error
	d.constraints, err = constraint.Parse(spec.Policy.Constraints)
	if err != nil {
		return nil, fmt.Errorf("%s: constraints: %w", d.what(), err)
	}
	choices := slices.Clone(spec.Choices)
	slices.SortStableFunc(choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(max(a.Priority, 0), max(b.Priority, 0)))
	})
	for _, choice := range choices {
		if slices.ContainsFunc(d.candidates, func(c candidate) bool { return c.version == choice.Version }) {
			continue
		}
		c := candidate{version: choice.Version}
		for i := range spec.Services {
			if s := &spec.Services[i]; s.Version == choice.Version {
				compiled, err := d.compile(s)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", d.what(), err)
				}
				c.services = append(c.services, compiled)
			}
		}
		// Services for one architecture have priority over those for all.
		slices.SortStableFunc(c.services, func(a, b compiled) int {
			return cmp.Or(boolean(a.Arch == AnyArch, b.Arch == AnyArch), cmp.Compare(a.Arch, b.Arch))
		})
		d.candidates = append(d.candidates, c)
	}
	return d, nil
}

// rank orders versions with a priority before those without.
func rank(c Choice) int {
	if c.Priority <= 0 {
		return 1
	}
	return 0
}

func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (d *Deployment) compile(s *Service) (compiled, error) {
	c := compiled{Service: s}
	if s.Org != d.spec.Org || s.Name != d.spec.Service {
		return c, fmt.Errorf("service %s of %s is not service %s of %s, which is deployed", s.Name, s.Org, d.spec.Service, d.spec.Org)
	}
	var err error
	c.constraints, err = constraint.Parse(s.Policy.Constraints)
	if err != nil {
		return c, fmt.Errorf("version %s of service %s: constraints: %w", s.Version, s.Name, err)
	}
	// The policy knows its purpose, so its properties have priority. It cannot override which service it is.
	c.properties, err = stamp(overlay(s.Policy.Properties, d.spec.Policy.Properties), s.properties())
	if err != nil {
		return c, fmt.Errorf("version %s of service %s: %w", s.Version, s.Name, err)
	}
	if s.Contents != nil {
		c.clusterObjects = s.Contents.ClusterScoped()
	}
	return c, nil
}

// what describes a deployment, for messages.
func (d *Deployment) what() string {
	if d.spec.Pattern {
		return "pattern " + d.spec.Name
	}
	return "policy " + d.spec.Name
}
