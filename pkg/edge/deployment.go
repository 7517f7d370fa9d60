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
	// ForClusters says that it has something for nodes that are clusters, and ForDevices that it has for devices.
	ForClusters, ForDevices bool
	// Contents are what is in its archive. They are nil where the archive cannot be read.
	Contents *archive.Contents
	Policy   Policy
}

// Choice is a version that a deployment names.
type Choice struct {
	Version string
	// Priority is lower for what is tried earlier. What has none (0) comes last.
	Priority int
}

// DeploymentSpec is a policy, or a pattern with one of its services, as its author wrote it.
type DeploymentSpec struct {
	// Name is that of the policy or pattern, with the namespace before it where there are several.
	Name string
	// Org and Service are of the service that is deployed. All versions of it are one service.
	Org, Service string
	// Pattern says that it is a pattern.
	Pattern bool
	// Arch is the architecture of nodes that it is for; AnyArch or empty is for all.
	Arch             string
	ClusterNamespace string
	Choices          []Choice
	// Policy is of policies only.
	Policy Policy
	// Services are all versions that there are of the service, for all architectures.
	Services []Service
}

// Deployment is one that was read. It never changes, and can be used by several goroutines at once.
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

// compiled is a service with what it is when this deployment deploys it.
type compiled struct {
	*Service
	constraints *constraint.Constraints
	// properties are those of deployment and service, and the built-in ones.
	properties *constraint.Properties
	// clusterObjects are what a namespace-scoped agent cannot make.
	clusterObjects []archive.Object
}

// NewDeployment reads a deployment and its services. An error says what cannot be read; nothing is deployed by such a deployment.
func NewDeployment(spec DeploymentSpec) (*Deployment, error) {
	spec.Services = slices.Clone(spec.Services)
	d := &Deployment{spec: spec}
	var err error
	if d.constraints, err = constraint.Parse(spec.Policy.Constraints); err != nil {
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
		// What is for one architecture is taken before what is for all.
		slices.SortStableFunc(c.services, func(a, b compiled) int {
			return cmp.Or(boolean(a.Arch == AnyArch, b.Arch == AnyArch), cmp.Compare(a.Arch, b.Arch))
		})
		d.candidates = append(d.candidates, c)
	}
	return d, nil
}

// rank puts those with a priority before those without.
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
	if c.constraints, err = constraint.Parse(s.Policy.Constraints); err != nil {
		return c, fmt.Errorf("version %s of service %s: constraints: %w", s.Version, s.Name, err)
	}
	// The policy knows what it is for, so it has the last word. It cannot say that the service is another.
	if c.properties, err = stamp(overlay(s.Policy.Properties, d.spec.Policy.Properties), s.properties()); err != nil {
		return c, fmt.Errorf("version %s of service %s: %w", s.Version, s.Name, err)
	}
	if s.Contents != nil {
		c.clusterObjects = s.Contents.ClusterScoped()
	}
	return c, nil
}

// what a deployment is, for messages.
func (d *Deployment) what() string {
	if d.spec.Pattern {
		return "pattern " + d.spec.Name
	}
	return "policy " + d.spec.Name
}
