// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestAudit_NoPolicyRecordsTokens(t *testing.T) {
	for _, c := range []struct {
		subresource string
		rule, want  auditinternal.Level
	}{
		{"token", auditinternal.LevelRequestResponse, auditinternal.LevelMetadata},
		{"token", auditinternal.LevelRequest, auditinternal.LevelMetadata},
		{"token", auditinternal.LevelMetadata, auditinternal.LevelMetadata},
		{"token", auditinternal.LevelNone, auditinternal.LevelNone},
		{"status", auditinternal.LevelRequestResponse, auditinternal.LevelRequestResponse},
		{"", auditinternal.LevelRequestResponse, auditinternal.LevelRequestResponse},
	} {
		evaluator := withoutTokens{policy.NewPolicyRuleEvaluator(&auditinternal.Policy{Rules: []auditinternal.PolicyRule{{Level: c.rule}}})}
		got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{User: &user.DefaultInfo{}, Verb: "create",
			APIGroup: "clusters.openmcp.cloud", Resource: "accessrequests", Subresource: c.subresource, ResourceRequest: true})
		if got.Level != c.want {
			t.Errorf("%q with a rule for %s: %s, want %s", c.subresource, c.rule, got.Level, c.want)
		}
	}
}
