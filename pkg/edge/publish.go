// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// maxNamed is the maximum number of items that a warning names.
const maxNamed = 3

// Warnings returns the warnings for the author of a service when it is published. All of it is allowed.
func (s *Service) Warnings() []string {
	if s.Contents == nil {
		return nil
	}
	var list []string
	c := s.Contents
	switch embedded, certain := c.Embedded(); {
	case !certain:
		list = append(list, fmt.Sprintf("the archive names several namespaces (%s): it can be deployed only with clusterNamespace, and then all of it goes there",
			named(c.Namespaces)))
	case embedded != "":
		list = append(list, fmt.Sprintf("the archive names the namespace %s: without clusterNamespace, no namespace-scoped node of another namespace gets it. "+
			"Omit the namespace, so that policies and patterns choose it", embedded))
	}
	if objects := c.ClusterScoped(); len(objects) > 0 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = o.String()
		}
		list = append(list, fmt.Sprintf("the archive has objects that are in no namespace (%s): a namespace-scoped node gets it only if they are there already", named(names)))
	}
	if c.MakesNamespaces {
		list = append(list, "the archive has objects of kind Namespace: they are not deployed, nor are their labels and annotations")
	}
	if len(c.Ignored) > 0 {
		list = append(list, fmt.Sprintf("the archive has files that are not read (%s): manifests are in files that end in .yaml, .yml or .json", named(c.Ignored)))
	}
	if w := s.conflict(); w != "" {
		list = append(list, w)
	}
	return list
}

// conflict returns a warning if the service's own constraints exclude its embedded namespace.
func (s *Service) conflict() string {
	a, err := Analyze(DeploymentSpec{Choices: []Choice{{Version: s.Version}}, Services: []Service{*s}})
	if err != nil {
		// Constraints that cannot be parsed are rejected elsewhere.
		return ""
	}
	return a.Warning()
}

func named(names []string) string {
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

// Pattern is a pattern as a whole. Each of its services is a deployment of its own in decisions.
type Pattern struct {
	ClusterNamespace string
	Services         []PatternService
}

// PatternService is a service of a pattern.
type PatternService struct {
	Org, Name string
	// Arch is the architecture of its nodes; AnyArch or empty means all.
	Arch string
	// Services are the existing versions of those that the pattern names.
	Services []Service
}

// Check returns why a pattern is rejected, and the warnings for its author. It is rejected if its services cannot all be deployed to one namespace,
// or if one of them cannot be deployed to any.
func (p *Pattern) Check() (faults, warnings []string) {
	forClusters := false
	for i := range p.Services {
		s := &p.Services[i]
		usable, several := s.usable(p.ClusterNamespace)
		forClusters = forClusters || len(usable) > 0 || several
		if len(usable) == 0 && several {
			faults = append(faults, fmt.Sprintf("the archive of service %s names several namespaces, so it cannot go to one: set clusterNamespace, or name one namespace in the archive", s.Name))
		}
		for _, v := range usable {
			if embedded, certain := v.Contents.Embedded(); p.ClusterNamespace != "" && certain && embedded != "" && embedded != p.ClusterNamespace {
				warnings = append(warnings, fmt.Sprintf("version %s of service %s names the namespace %s in its archive, and goes to %s: clusterNamespace takes precedence",
					v.Version, s.Name, embedded, p.ClusterNamespace))
			}
		}
		for j := range p.Services[:i] {
			if fault := collision(p, &p.Services[j], s); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	if p.ClusterNamespace != "" && len(p.Services) > 0 && !forClusters && p.allThere() {
		faults = append(faults, "clusterNamespace is set, and no service has a clusterDeployment: leave it out, or add a service for clusters")
	}
	return faults, warnings
}

// allThere reports whether a version of each service exists: only then their contents are known.
func (p *Pattern) allThere() bool {
	for i := range p.Services {
		if len(p.Services[i].Services) == 0 {
			return false
		}
	}
	return true
}

// usable returns the versions that can be deployed to a namespace, and whether there is one that cannot since it names several.
func (s *PatternService) usable(clusterNamespace string) (list []*Service, several bool) {
	for i := range s.Services {
		v := &s.Services[i]
		if !v.ForClusters || v.Contents == nil || !compatible(s.Arch, v.Arch) {
			continue
		}
		if _, certain := v.Contents.Embedded(); !certain && clusterNamespace == "" {
			several = true
			continue
		}
		list = append(list, v)
	}
	return list, several
}

// collision finds an object that two services would both have in one namespace of a node. They may share cluster-scoped objects.
func collision(p *Pattern, a, b *PatternService) string {
	if !compatible(a.Arch, b.Arch) {
		return ""
	}
	ours, _ := a.usable(p.ClusterNamespace)
	theirs, _ := b.usable(p.ClusterNamespace)
	for _, v := range ours {
		has := make(map[archive.Object]bool, len(v.Contents.Objects))
		for _, o := range v.Contents.Objects {
			if o.Scope != archive.Cluster {
				has[identity(o)] = true
			}
		}
		for _, w := range theirs {
			if !compatible(v.Arch, w.Arch) || p.target(v) != p.target(w) {
				continue
			}
			for _, o := range w.Contents.Objects {
				if has[identity(o)] {
					return fmt.Sprintf("the services %s (version %s) and %s (version %s) cannot go to one namespace: both have %s",
						a.Name, v.Version, b.Name, w.Version, identity(o))
				}
			}
		}
	}
	return ""
}

// target returns the target namespace of a version, or "" for that of the agent.
func (p *Pattern) target(s *Service) string {
	if p.ClusterNamespace != "" {
		return p.ClusterNamespace
	}
	embedded, _ := s.Contents.Embedded()
	return embedded
}

// compatible reports whether one node can match both architectures.
func compatible(a, b string) bool {
	return a == b || a == "" || a == AnyArch || b == "" || b == AnyArch
}
