// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// withoutSecrets keeps Secrets and tokens out of the audit log, whatever its policy: requests for resources that may contain them are recorded
// without their bodies.
type withoutSecrets struct {
	audit.PolicyRuleEvaluator
}

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (w withoutSecrets) EvaluatePolicyRule(attributes authorizer.Attributes) audit.RequestAuditConfig {
	config := w.PolicyRuleEvaluator.EvaluatePolicyRule(attributes)
	if hasSecrets(attributes) && auditinternal.LevelMetadata.Less(config.Level) {
		config.Level = auditinternal.LevelMetadata
	}
	return config
}

// hasSecrets reports whether the bodies of a request may contain a Secret: works and edge services contain the manifests of other objects.
func hasSecrets(attributes authorizer.Attributes) bool {
	switch resource := (schema.GroupResource{Group: attributes.GetAPIGroup(), Resource: attributes.GetResource()}); resource.Group {
	case work.GroupName:
		return true
	case edge.GroupName:
		return resource == edge.Resource("edgeservices")
	default:
		return resource == openmcp.Resource("accessrequests") && attributes.GetSubresource() == "token"
	}
}
