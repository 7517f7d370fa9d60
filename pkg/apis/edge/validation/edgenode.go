// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

var (
	nodeTypes = []edge.NodeType{edge.NodeTypeCluster, edge.NodeTypeDevice}
	// factForm matches facts of a node, which become values of properties and are shown to users.
	factForm = regexp.MustCompile(`^[!-~]*$`)
)

// ValidateEdgeNode validates a new node.
func ValidateEdgeNode(n *edge.EdgeNode, languages Languages) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&n.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validateNodeSpec(&n.Spec, languages, field.NewPath("spec"))...)
}

// ValidateEdgeNodeUpdate validates an update of a node. An unchanged spec is not validated again, because a later version of the hub may
// accept less.
func ValidateEdgeNodeUpdate(n, old *edge.EdgeNode, languages Languages) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&n.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if apiequality.Semantic.DeepEqual(n.Spec, old.Spec) {
		return errs
	}
	return append(errs, validateNodeSpec(&n.Spec, languages, field.NewPath("spec"))...)
}

// ValidateEdgeNodeStatusUpdate validates an update of the facts of a node.
func ValidateEdgeNodeStatusUpdate(n, old *edge.EdgeNode) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&n.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateNodeStatus(&n.Status, field.NewPath("status"))...)
}

func validateNodeSpec(spec *edge.EdgeNodeSpec, languages Languages, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.NodeType != "" {
		errs = append(errs, bounds.OneOf(path.Child("nodeType"), spec.NodeType, nodeTypes)...)
	}
	if spec.Pattern != "" {
		errs = append(errs, patternKey(spec.Pattern, path.Child("pattern"))...)
	}
	errs = append(errs, validatePolicy(&spec.Policy, languages, path)...)
	errs = append(errs, validatePolicy(spec.Deployment, languages, path.Child("deployment"))...)
	return append(errs, validatePolicy(spec.Management, languages, path.Child("management"))...)
}

func patternKey(pattern string, path *field.Path) field.ErrorList {
	namespace, name, ok := edge.PatternKey(pattern)
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(name) > edge.MaxOriginName || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(path, pattern, "must be <namespace>/<name> of a DeploymentPattern")}
	}
	return nil
}

func validateNodeStatus(s *edge.EdgeNodeStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Arch != "" {
		errs = append(errs, arch(s.Arch, nil, path.Child("arch"))...)
	}
	errs = append(errs, fact(s.KubernetesVersion, path.Child("kubernetesVersion"))...)
	errs = append(errs, namespaceName(s.Namespace, path.Child("namespace"))...)
	if s.NamespaceScoped != nil && s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "must be set with namespaceScoped: omit both if the namespace is not known"))
	}
	return append(errs, fact(s.ClusterID, path.Child("clusterID"))...)
}

func fact(text string, path *field.Path) field.ErrorList {
	if !factForm.MatchString(text) {
		return field.ErrorList{field.Invalid(path, text, "must only have printable ASCII characters without spaces")}
	}
	return nil
}
