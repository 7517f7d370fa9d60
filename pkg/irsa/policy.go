// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"bytes"
	"encoding/json"
)

const (
	policyVersion = "2012-10-17"
	allow         = "Allow"
	deny          = "Deny"
	assumeRole    = "sts:AssumeRole"
	stsAudience   = "sts.amazonaws.com"
)

// PolicyDocument is a policy document of IAM.
type PolicyDocument struct {
	Version   string
	Statement []Statement
}

// Statement is one rule of a PolicyDocument.
type Statement struct {
	Effect    string
	Principal *Principal `json:",omitempty"`
	Action    Values
	Resource  Values                       `json:",omitempty"`
	Condition map[string]map[string]Values `json:",omitempty"`
}

// Principal is the subject of a trust policy.
type Principal struct {
	AWS       string `json:",omitempty"`
	Federated string `json:",omitempty"`
}

// Values is encoded as in IAM's own documents: a single value has no brackets.
type Values []string

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	if len(v) == 1 {
		return json.Marshal(v[0])
	}
	return json.Marshal([]string(v))
}

// JSON returns the document in one line.
func (p PolicyDocument) JSON() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		panic(err) // strings can always be encoded
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// Indented returns the document in a form for people to read.
func (p PolicyDocument) Indented() string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(p.JSON()), "", "  "); err != nil {
		panic(err)
	}
	return b.String()
}

func newPolicy(statements ...Statement) PolicyDocument {
	return PolicyDocument{Version: policyVersion, Statement: statements}
}

// HubTrustPolicy returns the trust policy of HubRole: ManagedRole may assume it, if it has the tags of this identity.
func (i Identity) HubTrustPolicy() PolicyDocument {
	tags := map[string]Values{}
	for key, value := range i.Tags() {
		tags["aws:PrincipalTag/"+key] = Values{value}
	}
	return newPolicy(Statement{
		Effect:    allow,
		Principal: &Principal{AWS: i.ManagedRoleARN()},
		Action:    Values{assumeRole},
		Condition: map[string]map[string]Values{"StringEquals": tags},
	})
}

// NoTrustPolicy returns the trust policy of a role that cannot be assumed. IAM accepts no trust policy without a statement.
func NoTrustPolicy() PolicyDocument {
	return newPolicy(Statement{Effect: deny, Principal: &Principal{AWS: "*"}, Action: Values{assumeRole}})
}

// HubAccessPolicy returns the rights of HubRole in AWS: to describe and list the hub's cluster. RBAC determines its rights on the hub.
func (i Identity) HubAccessPolicy() PolicyDocument {
	return newPolicy(Statement{
		Effect:   allow,
		Action:   Values{"eks:DescribeCluster", "eks:ListClusters"},
		Resource: Values{i.Hub.String()},
	})
}

// ManagedAccessPolicy returns the rights of ManagedRole: to assume HubRole.
func (i Identity) ManagedAccessPolicy() PolicyDocument {
	return newPolicy(Statement{Effect: allow, Action: Values{assumeRole}, Resource: Values{i.HubRoleARN()}})
}

// WebIdentityTrustPolicy returns the trust policy of a role of a cluster's account that the given subjects may assume with the cluster's own tokens.
// The provider is the cluster's OIDC issuer without "https://"; a subject is "system:serviceaccount:<namespace>:<name>".
func WebIdentityTrustPolicy(cluster ClusterARN, provider string, subjects ...string) PolicyDocument {
	p := newPolicy()
	for _, subject := range subjects {
		p.Statement = append(p.Statement, Statement{
			Effect:    allow,
			Principal: &Principal{Federated: "arn:" + cluster.Partition + ":iam::" + cluster.Account + ":oidc-provider/" + provider},
			Action:    Values{"sts:AssumeRoleWithWebIdentity"},
			Condition: map[string]map[string]Values{"StringEquals": {
				provider + ":sub": {subject},
				provider + ":aud": {stsAudience},
			}},
		})
	}
	return p
}

// CreatorPolicy returns the rights of CreatorRole: exactly what the hub's controller calls. Of the specification's list it leaves out the rights to
// create and change managed policies, to list roles, and iam:PassRole. With access entries it may create those of HubRoles, and no others; without
// them, the hub edits aws-auth and does not call EKS. With a boundary it may only create roles that have it, and grant rights to no others.
func CreatorPolicy(hub ClusterARN, roles HubRoles) PolicyDocument {
	p := newPolicy(roles.iamStatements(hub)...)
	if roles.AccessEntries {
		p.Statement = append(p.Statement, roles.eksStatements(hub)...)
	}
	return p
}

func (r HubRoles) iamStatements(hub ClusterARN) []Statement {
	all := hub.roleARN(r.Path, hubRolePrefix+"*")
	bounded := Values{"iam:CreateRole", "iam:PutRolePolicy"}
	free := Values{
		"iam:DeleteRole",
		"iam:GetRole",
		"iam:TagRole",
		"iam:UpdateAssumeRolePolicy",
		"iam:GetRolePolicy",
		"iam:ListRolePolicies",
		"iam:DeleteRolePolicy",
		"iam:ListAttachedRolePolicies",
		"iam:DetachRolePolicy",
	}
	var statements []Statement
	if r.Boundary == "" {
		statements = []Statement{{Effect: allow, Action: append(bounded, free...), Resource: Values{all}}}
	} else {
		statements = []Statement{{
			Effect: allow, Action: append(bounded, "iam:PutRolePermissionsBoundary"), Resource: Values{all},
			// For CreateRole and PutRolePermissionsBoundary this is the boundary that the role gets, and for PutRolePolicy the one that it has.
			Condition: map[string]map[string]Values{"StringEquals": {"iam:PermissionsBoundary": {r.Boundary}}},
		}, {Effect: allow, Action: free, Resource: Values{all}}}
	}
	if r.Path != "" {
		// If a role does not exist, IAM checks the right without a path. The hub needs the right to find out that it does not exist.
		statements = append(statements, Statement{Effect: allow, Action: Values{"iam:GetRole"}, Resource: Values{hub.roleARN("", hubRolePrefix+"*")}})
	}
	return statements
}

func (r HubRoles) eksStatements(hub ClusterARN) []Statement {
	entriesOf := func(path RolePath) string {
		return "arn:" + hub.Partition + ":eks:" + hub.Region + ":" + hub.Account + ":access-entry/" + hub.Name +
			"/role/" + hub.Account + path.String() + hubRolePrefix + "*"
	}
	entries := Values{entriesOf("")}
	if r.Path != "" { // AWS does not document whether the ARN of an entry has the path of its role
		entries = append(entries, entriesOf(r.Path))
	}
	return []Statement{{
		Effect:   allow,
		Action:   Values{"eks:CreateAccessEntry"},
		Resource: Values{hub.String()},
		// With an entry for any principal, the creator could become an admin of the hub.
		Condition: map[string]map[string]Values{"ArnLike": {"eks:principalArn": {hub.roleARN(r.Path, hubRolePrefix+"*")}}},
	}, {
		Effect: allow,
		Action: Values{
			"eks:DescribeAccessEntry",
			"eks:UpdateAccessEntry",
			"eks:DeleteAccessEntry",
			"eks:ListAssociatedAccessPolicies",
			"eks:DisassociateAccessPolicy",
		},
		Resource: entries,
	}, {
		Effect: allow,
		Action: Values{"eks:TagResource"},
		// AWS does not document for which of them EKS checks this right when an entry is created with tags. The hub's cluster must not get tags by
		// which other policies grant rights.
		Resource:  append(Values{hub.String()}, entries...),
		Condition: map[string]map[string]Values{"ForAllValues:StringEquals": {"aws:TagKeys": append(ownTagKeys(), r.TagKeys...)}},
	}}
}
