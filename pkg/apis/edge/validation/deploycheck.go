// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// ValidateDeployCheck validates a request. It is not stored, so its name is not validated.
func ValidateDeployCheck(c *edge.DeployCheck, languages Languages) field.ErrorList {
	spec, path := &c.Spec, field.NewPath("spec")
	errs := oneQuestion(spec, path)
	if spec.Policy != nil {
		errs = append(errs, validatePolicySpec(spec.Policy, languages, path.Child("policy"))...)
	}
	if spec.Pattern != nil {
		errs = append(errs, validatePatternSpec(spec.Pattern, languages, path.Child("pattern"))...)
	}
	errs = append(errs, validateCheckedServices(spec.Services, c.Namespace, languages, path.Child("services"))...)
	return append(errs, validateCheckedNodes(spec, languages, path)...)
}

func oneQuestion(spec *edge.DeployCheckSpec, path *field.Path) field.ErrorList {
	var asked []string
	for _, question := range []struct {
		name string
		is   bool
	}{
		{"policyName", spec.PolicyName != ""}, {"policy", spec.Policy != nil}, {"patternName", spec.PatternName != ""}, {"pattern", spec.Pattern != nil},
	} {
		if question.is {
			asked = append(asked, question.name)
		}
	}
	switch len(asked) {
	case 0:
		return field.ErrorList{field.Required(path.Child("policy"), "must have one of policyName, policy, patternName and pattern")}
	case 1:
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child(asked[1]), "must not be set together with "+asked[0]+": check one policy or pattern at a time")}
}

func validateCheckedServices(services []edge.CheckedService, namespace string, languages Languages, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range services {
		s, at := &services[i], path.Index(i)
		errs = append(errs, namespaceName(s.Org, at.Child("org"))...)
		errs = append(errs, validateServiceSpec(&s.Spec, languages, at.Child("spec"))...)
		org := s.Org
		if org == "" {
			org = namespace
		}
		errs = append(errs, once(names, org+"/"+edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch), at)...)
	}
	return errs
}

func validateCheckedNodes(spec *edge.DeployCheckSpec, languages Languages, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	nodes, nodeNames := path.Child("nodes"), path.Child("nodeNames")
	names := sets.New[string]()
	for i := range spec.Nodes {
		n, at := &spec.Nodes[i], nodes.Index(i)
		errs = append(errs, nodeName(n.Name, at.Child("name"))...)
		errs = append(errs, once(names, n.Name, at.Child("name"))...)
		errs = append(errs, validateNodeSpec(&n.Spec, languages, at.Child("spec"))...)
		errs = append(errs, validateNodeStatus(&n.Status, at.Child("status"))...)
	}
	for i, name := range spec.NodeNames {
		errs = append(errs, nodeName(name, nodeNames.Index(i))...)
		errs = append(errs, once(names, name, nodeNames.Index(i))...)
	}
	return errs
}
