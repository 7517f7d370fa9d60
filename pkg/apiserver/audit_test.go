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

func TestAudit_NoPolicyRecordsSecrets(t *testing.T) {
	const requests, openmcp, works, edge = "accessrequests", "clusters.openmcp.cloud", "work.open-cluster-management.io", "edge.clusterhub.dev"
	for _, c := range []struct {
		group, resource, subresource string
		rule, want                   auditinternal.Level
	}{
		{openmcp, requests, "token", auditinternal.LevelRequestResponse, auditinternal.LevelMetadata},
		{openmcp, requests, "token", auditinternal.LevelRequest, auditinternal.LevelMetadata},
		{openmcp, requests, "token", auditinternal.LevelMetadata, auditinternal.LevelMetadata},
		{openmcp, requests, "token", auditinternal.LevelNone, auditinternal.LevelNone},
		{openmcp, requests, "status", auditinternal.LevelRequestResponse, auditinternal.LevelRequestResponse},
		{openmcp, requests, "", auditinternal.LevelRequestResponse, auditinternal.LevelRequestResponse},
		{works, "manifestworks", "", auditinternal.LevelRequestResponse, auditinternal.LevelMetadata},
		{works, "manifestworks", "status", auditinternal.LevelRequest, auditinternal.LevelMetadata},
		{works, "manifestworkreplicasets", "", auditinternal.LevelRequest, auditinternal.LevelMetadata},
		{works, "manifestworkreplicasetrevisions", "", auditinternal.LevelRequest, auditinternal.LevelMetadata},
		{edge, "edgeservices", "", auditinternal.LevelRequestResponse, auditinternal.LevelMetadata},
		{edge, "edgenodes", "", auditinternal.LevelRequestResponse, auditinternal.LevelRequestResponse},
	} {
		evaluator := withoutSecrets{policy.NewPolicyRuleEvaluator(&auditinternal.Policy{Rules: []auditinternal.PolicyRule{{Level: c.rule}}})}
		got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{User: &user.DefaultInfo{}, Verb: "create",
			APIGroup: c.group, Resource: c.resource, Subresource: c.subresource, ResourceRequest: true})
		if got.Level != c.want {
			t.Errorf("%s %q with a rule for %s: %s, want %s", c.resource, c.subresource, c.rule, got.Level, c.want)
		}
	}
}
