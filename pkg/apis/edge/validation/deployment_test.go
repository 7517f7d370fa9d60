// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

func versions(list ...string) []edge.ServiceVersion {
	var versions []edge.ServiceVersion
	for i, v := range list {
		versions = append(versions, edge.ServiceVersion{Version: v, Priority: &edge.Priority{PriorityValue: int32(i + 1)}})
	}
	return versions
}

func inputs() []edge.ServiceInput {
	return []edge.ServiceInput{{ServiceUrl: "web", ServiceVersionRange: "[1.0.0,2.0.0)", Inputs: []edge.Input{{Name: "A", Value: number(1)}}}}
}

func policy() *edge.DeploymentPolicy {
	return &edge.DeploymentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", ResourceVersion: "1"},
		Spec: edge.DeploymentPolicySpec{
			Service:   edge.PolicyService{Name: "web", Org: "tools", Arch: "*", ClusterNamespace: "blue", ServiceVersions: versions("1.0.0", "2.0.0")},
			Policy:    edge.Policy{Properties: []edge.Property{{Name: "a", Value: number(1)}}, Constraints: []string{"a == b"}},
			UserInput: inputs(),
		},
	}
}

func TestValidateDeploymentPolicy(t *testing.T) {
	try(t, []row[edge.DeploymentPolicy]{
		{"valid", func(*edge.DeploymentPolicy) {}, ""},
		{"the longest name", func(p *edge.DeploymentPolicy) { p.Name = long(244) }, ""},
		{"a longer one", func(p *edge.DeploymentPolicy) { p.Name = long(245) }, "metadata.name"},
		{"the longest author", func(p *edge.DeploymentPolicy) {
			p.Annotations = map[string]string{edge.AuthorAnnotation: long(author.MaxLength)}
		}, ""},
		{"a longer one", func(p *edge.DeploymentPolicy) {
			p.Annotations = map[string]string{edge.AuthorAnnotation: long(author.MaxLength + 1)}
		},
			"metadata.annotations[edge.clusterhub.dev/author]"},
		{"no service", func(p *edge.DeploymentPolicy) { p.Spec.Service.Name = "" }, "spec.service.name"},
		{"an org that is no namespace", func(p *edge.DeploymentPolicy) { p.Spec.Service.Org = "IBM" }, "spec.service.org"},
		{"an arch with spaces", func(p *edge.DeploymentPolicy) { p.Spec.Service.Arch = "a b" }, "spec.service.arch"},
		// The example of the specification.
		{"an upper-case namespace", func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "ABC" }, "spec.service.clusterNamespace"},
		{"a namespace with dots", func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "a.b" }, "spec.service.clusterNamespace"},
		{"a long namespace", func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = long(64) }, "spec.service.clusterNamespace"},
		{"a namespace that begins with a digit", func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "5g-edge" }, ""},
		{"no version", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions = nil }, "spec.service.serviceVersions"},
		{"many versions", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions = make([]edge.ServiceVersion, 33) }, "spec.service.serviceVersions"},
		{"a version twice", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions = versions("1", "1") }, "spec.service.serviceVersions[1].version"},
		{"one without priority", func(p *edge.DeploymentPolicy) {
			p.Spec.Service.ServiceVersions = []edge.ServiceVersion{{Version: "1"}}
		}, ""},
		{"one of two without priority", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority = nil }, ""},
		{"a priority twice", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions[1].Priority.PriorityValue = 1 }, "spec.service.serviceVersions[1].priority.priority_value"},
		{"the priority 0", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority.PriorityValue = 0 }, "spec.service.serviceVersions[0].priority.priority_value"},
		{"many retries", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority.Retries = 101 }, "spec.service.serviceVersions[0].priority.retries"},
		{"a negative time", func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority.RetryDurations = -1 }, "spec.service.serviceVersions[0].priority.retry_durations"},
		{"a long time", func(p *edge.DeploymentPolicy) {
			p.Spec.Service.ServiceVersions[0].Priority.VerifiedDurations = 7*24*60*60 + 1
		}, "spec.service.serviceVersions[0].priority.verified_durations"},
		{"a bad constraint", func(p *edge.DeploymentPolicy) { p.Spec.Constraints[0] = "bad" }, "spec.constraints[0]"},
		{"a bad range", func(p *edge.DeploymentPolicy) { p.Spec.UserInput[0].ServiceVersionRange = "bad" }, "spec.userInput[0].serviceVersionRange"},
		{"a long range", func(p *edge.DeploymentPolicy) { p.Spec.UserInput[0].ServiceVersionRange = long(129) }, "spec.userInput[0].serviceVersionRange"},
		{"many inputs", func(p *edge.DeploymentPolicy) { p.Spec.UserInput = make([]edge.ServiceInput, 65) }, "spec.userInput"},
		{"an input twice", func(p *edge.DeploymentPolicy) {
			p.Spec.UserInput[0].Inputs = filled(2, edge.Input{Name: "A", Value: number(1)})
		}, "spec.userInput[0].inputs[1]"},
		{"an input without value", func(p *edge.DeploymentPolicy) { p.Spec.UserInput[0].Inputs[0].Value = edge.Value{} }, "spec.userInput[0].inputs[0].value"},
		{"a long list", func(p *edge.DeploymentPolicy) {
			p.Spec.UserInput[0].Inputs[0].Value = edge.Value{Type: edge.ValueList, List: make([]string, 129)}
		}, "spec.userInput[0].inputs[0].value"},
		{"a list with a long text", func(p *edge.DeploymentPolicy) {
			p.Spec.UserInput[0].Inputs[0].Value = edge.Value{Type: edge.ValueList, List: []string{long(4097)}}
		}, "spec.userInput[0].inputs[0].value[0]"},
	}, policy, func(p *edge.DeploymentPolicy) field.ErrorList { return ValidateDeploymentPolicy(p, languages) })
}

func pattern() *edge.DeploymentPattern {
	return &edge.DeploymentPattern{
		ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "shop", ResourceVersion: "1"},
		Spec: edge.DeploymentPatternSpec{
			Services: []edge.PatternService{
				{ServiceUrl: "web", ServiceArch: "amd64", ServiceVersions: versions("1.0.0")},
				{ServiceUrl: "web", ServiceArch: "arm64", ServiceVersions: versions("1.0.0")},
			},
			UserInput: inputs(),
		},
	}
}

func TestValidateDeploymentPattern(t *testing.T) {
	try(t, []row[edge.DeploymentPattern]{
		{"valid", func(*edge.DeploymentPattern) {}, ""},
		{"a longer name", func(p *edge.DeploymentPattern) { p.Name = long(245) }, "metadata.name"},
		{"an upper-case namespace", func(p *edge.DeploymentPattern) { p.Spec.ClusterNamespace = "ABC" }, "spec.clusterNamespace"},
		{"no service", func(p *edge.DeploymentPattern) { p.Spec.Services = nil }, "spec.services"},
		{"many services", func(p *edge.DeploymentPattern) { p.Spec.Services = make([]edge.PatternService, 33) }, "spec.services"},
		{"a service twice", func(p *edge.DeploymentPattern) { p.Spec.Services[1].ServiceArch = "amd64" }, "spec.services[1]"},
		{"a service for any arch twice", func(p *edge.DeploymentPattern) {
			p.Spec.Services[0].ServiceArch, p.Spec.Services[1].ServiceArch = "*", ""
		}, "spec.services[1]"},
		{"an org that is no namespace", func(p *edge.DeploymentPattern) { p.Spec.Services[0].ServiceOrgid = "a/b" }, "spec.services[0].serviceOrgid"},
		{"a bad range", func(p *edge.DeploymentPattern) { p.Spec.UserInput[0].ServiceVersionRange = "bad" }, "spec.userInput[0].serviceVersionRange"},
	}, pattern, func(p *edge.DeploymentPattern) field.ErrorList { return ValidateDeploymentPattern(p, languages) })
}

func TestValidateDeploymentStatuses(t *testing.T) {
	try(t, []row[edge.DeploymentPolicy]{
		{"valid", func(p *edge.DeploymentPolicy) { p.Status.Excluded = []edge.ExcludedNodes{{Reason: "Arch", Nodes: 3}} }, ""},
		{"a negative number", func(p *edge.DeploymentPolicy) { p.Status.Nodes.Failed = -1 }, "status.nodes.failed"},
		{"a reason twice", func(p *edge.DeploymentPolicy) { p.Status.Excluded = filled(2, edge.ExcludedNodes{Reason: "Arch"}) }, "status.excluded[1]"},
		{"many reasons", func(p *edge.DeploymentPolicy) { p.Status.Excluded = make([]edge.ExcludedNodes, 33) }, "status.excluded"},
		{"many conditions", func(p *edge.DeploymentPolicy) { p.Status.Conditions = make([]metav1.Condition, 17) }, "status.conditions"},
	}, policy, func(p *edge.DeploymentPolicy) field.ErrorList {
		return ValidateDeploymentPolicyStatusUpdate(p, policy())
	})
	if errs := ValidateDeploymentPatternStatusUpdate(pattern(), pattern()); len(errs) > 0 {
		t.Error(errs)
	}
}

func placement() *edge.EdgePlacement {
	spec := edge.EdgePlacementSpec{
		Node: "c1", Origin: edge.PlacementOrigin{Kind: edge.KindDeploymentPolicy, Name: "web"},
		Services: []edge.PlacedService{{Name: "web", Org: "tools", Version: "1.0.0", Arch: "amd64", TargetNamespace: "blue"}},
	}
	return &edge.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: edge.PlacementName(spec.Origin, spec.Node), Namespace: "shop", ResourceVersion: "1"}, Spec: spec}
}

func TestValidateEdgePlacement(t *testing.T) {
	try(t, []row[edge.EdgePlacement]{
		{"valid", func(*edge.EdgePlacement) {}, ""},
		{"another name", func(p *edge.EdgePlacement) { p.Name = "web" }, "metadata.name"},
		{"another node", func(p *edge.EdgePlacement) { p.Spec.Node = "c2" }, "metadata.name"},
		{"nothing placed", func(p *edge.EdgePlacement) { p.Spec.Services = nil }, "spec.services"},
		{"no namespace", func(p *edge.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "" }, "spec.services[0].targetNamespace"},
		{"an upper-case namespace", func(p *edge.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "ABC" }, "spec.services[0].targetNamespace"},
	}, placement, ValidateEdgePlacement)
	try(t, []row[edge.EdgePlacement]{
		{"another version", func(p *edge.EdgePlacement) { p.Spec.Services[0].Version = "2.0.0" }, ""},
		{"another node", func(p *edge.EdgePlacement) { p.Spec.Node = "c2" }, "spec.node"},
		{"another origin", func(p *edge.EdgePlacement) { p.Spec.Origin.Kind = edge.KindDeploymentPattern }, "spec.origin"},
	}, placement, func(p *edge.EdgePlacement) field.ErrorList { return ValidateEdgePlacementUpdate(p, placement()) })
	try(t, []row[edge.EdgePlacement]{
		{"running", func(p *edge.EdgePlacement) { p.Status.State = edge.PlacementRunning }, ""},
		{"another state", func(p *edge.EdgePlacement) { p.Status.State = "Done" }, "status.state"},
		{"a long message", func(p *edge.EdgePlacement) { p.Status.Message = long(1025) }, "status.message"},
		{"an attempt", func(p *edge.EdgePlacement) {
			p.Status.Attempts = []edge.VersionAttempt{attempt("web", edge.AttemptRetrying, 101), attempt("db", edge.AttemptRemoving, 0)}
		}, ""},
		{"an attempt twice", func(p *edge.EdgePlacement) {
			p.Status.Attempts = []edge.VersionAttempt{attempt("web", "", 1), attempt("web", "", 1)}
		}, "status.attempts[1]"},
		{"an attempt of no service", func(p *edge.EdgePlacement) {
			p.Status.Attempts = []edge.VersionAttempt{attempt("", "", 1)}
		}, "status.attempts[0].name"},
		{"an attempt in another state", func(p *edge.EdgePlacement) {
			p.Status.Attempts = []edge.VersionAttempt{attempt("web", "Done", 1)}
		}, "status.attempts[0].state"},
		{"too many failures", func(p *edge.EdgePlacement) {
			p.Status.Attempts = []edge.VersionAttempt{attempt("web", "", 102)}
		}, "status.attempts[0].failures"},
		{"many attempts", func(p *edge.EdgePlacement) { p.Status.Attempts = make([]edge.VersionAttempt, 65) }, "status.attempts"},
	}, placement, func(p *edge.EdgePlacement) field.ErrorList { return ValidateEdgePlacementStatusUpdate(p, placement()) })
}

func attempt(service string, state edge.AttemptState, failures int32) edge.VersionAttempt {
	return edge.VersionAttempt{Org: "shop", Name: service, Version: "2.0.0", State: state, Failures: failures}
}

func TestValidateDeployCheck(t *testing.T) {
	check := func() *edge.DeployCheck {
		return &edge.DeployCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: edge.DeployCheckSpec{
			Limit:    500,
			Policy:   &policy().Spec,
			Services: []edge.CheckedService{{Spec: service().Spec}},
			Nodes:    []edge.CheckedNode{{Name: "c1", Spec: node().Spec}},
		}}
	}
	try(t, []row[edge.DeployCheck]{
		{"valid", func(*edge.DeployCheck) {}, ""},
		{"nothing asked", func(c *edge.DeployCheck) { c.Spec.Policy = nil }, "spec.policy"},
		{"two questions", func(c *edge.DeployCheck) { c.Spec.PatternName = "all" }, "spec.patternName"},
		{"a bad policy", func(c *edge.DeployCheck) { c.Spec.Policy.Service.ClusterNamespace = "ABC" }, "spec.policy.service.clusterNamespace"},
		{"a service twice, once with the namespace", func(c *edge.DeployCheck) {
			c.Spec.Services = append(c.Spec.Services, edge.CheckedService{Org: "shop", Spec: service().Spec})
		}, "spec.services[1]"},
		{"many services", func(c *edge.DeployCheck) { c.Spec.Services = make([]edge.CheckedService, 17) }, "spec.services"},
		{"a bad node", func(c *edge.DeployCheck) { c.Spec.Nodes[0].Status.Namespace = "ABC" }, "spec.nodes[0].status.namespace"},
		{"a node twice", func(c *edge.DeployCheck) { c.Spec.NodeNames = []string{"c1"} }, "spec.nodeNames[0]"},
		{"many nodes", func(c *edge.DeployCheck) { c.Spec.Nodes = make([]edge.CheckedNode, 129) }, "spec.nodes"},
		{"many names", func(c *edge.DeployCheck) { c.Spec.NodeNames = make([]string, 1001) }, "spec.nodeNames"},
		{"a high limit", func(c *edge.DeployCheck) { c.Spec.Limit = 1001 }, "spec.limit"},
		{"a long continue", func(c *edge.DeployCheck) { c.Spec.Continue = long(64) }, "spec.continue"},
	}, check, func(c *edge.DeployCheck) field.ErrorList { return ValidateDeployCheck(c, languages) })
}
