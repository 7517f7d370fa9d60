// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// withoutTokens keeps tokens out of our audit log, whatever its policy: the answers of accessrequests/token are recorded
// without their content.
type withoutTokens struct {
	audit.PolicyRuleEvaluator
}

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (w withoutTokens) EvaluatePolicyRule(attributes authorizer.Attributes) audit.RequestAuditConfig {
	config := w.PolicyRuleEvaluator.EvaluatePolicyRule(attributes)
	if attributes.GetAPIGroup() == openmcp.GroupName && attributes.GetResource() == "accessrequests" &&
		attributes.GetSubresource() == "token" && auditinternal.LevelMetadata.Less(config.Level) {
		config.Level = auditinternal.LevelMetadata
	}
	return config
}
