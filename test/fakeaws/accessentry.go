// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"maps"
	"slices"
	"strings"
)

// AccessEntry is an access entry of a cluster.
type AccessEntry struct {
	ARN              string            `json:"accessEntryArn"`
	ClusterName      string            `json:"clusterName"`
	PrincipalARN     string            `json:"principalArn"`
	Username         string            `json:"username"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	Tags             map[string]string `json:"tags"`
	Type             string            `json:"type"`
	CreatedAt        int64             `json:"createdAt"`
	ModifiedAt       int64             `json:"modifiedAt"`

	// PrincipalID is the unique ID of the principal, which EKS does not return: another role of the same name has no access.
	PrincipalID string `json:"-"`
	// AccessPolicies are the ARNs of the associated access policies.
	AccessPolicies []string `json:"-"`

	policies map[string]association
	// made are the parameters that the entry was created with, for repeated requests.
	made api.Params
}

// AccessEntries returns the access entries of a cluster by their principals' ARNs.
func (a *Account) AccessEntries(clusterARN string) map[string]AccessEntry {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	out := map[string]AccessEntry{}
	if c := a.clusters[clusterARN]; c != nil {
		for principal, e := range c.entries {
			out[principal] = e.copy()
		}
	}
	return out
}

// ChangeAccessEntry changes an access entry, as other clients may, and reports whether it exists.
func (a *Account) ChangeAccessEntry(clusterARN, principal string, change func(*AccessEntry)) bool {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	c := a.clusters[clusterARN]
	if c == nil || c.entries[principal] == nil {
		return false
	}
	e := c.entries[principal]
	change(e)
	if e.Tags == nil {
		e.Tags = map[string]string{}
	}
	return true
}

// RemoveAccessEntry deletes an access entry.
func (a *Account) RemoveAccessEntry(clusterARN, principal string) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	if c := a.clusters[clusterARN]; c != nil {
		delete(c.entries, principal)
	}
}

// defaultUsername returns the username of a principal whose entry has none: for roles, that of the session.
func defaultUsername(principal string) string {
	part := strings.SplitN(principal, ":", 6)
	if !strings.HasPrefix(part[5], "role/") {
		return principal
	}
	return fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/{{SessionName}}", part[1], part[4], part[5][strings.LastIndex(part[5], "/")+1:])
}

// ownPrefixes are the prefixes of names of users and groups that are reserved for Kubernetes and AWS.
var ownPrefixes = []string{"system:", "eks:", "aws:", "amazon:", "iam:"}

// ownPrefix returns the reserved prefix of a name, or "".
func ownPrefix(name string) string {
	for _, prefix := range ownPrefixes {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// set sets username and groups. Reserved names are rejected.
func (e *AccessEntry) set(r *request) error {
	username, groups := e.Username, e.KubernetesGroups
	if r.params.Has("username") {
		username = r.params.Str("username")
		if prefix := ownPrefix(username); prefix != "" {
			return api.Fail("InvalidParameterException", "The username must not begin with %s", prefix)
		}
		if before, _, ok := strings.Cut(username, "{{SessionName"); ok && !strings.Contains(before, ":") {
			return api.Fail("InvalidParameterException", "The username must have a colon before {{SessionName}}")
		}
	}
	if r.params.Has("kubernetesGroups") {
		groups = r.params.Strs("kubernetesGroups")
		for _, group := range groups {
			if prefix := ownPrefix(group); prefix != "" {
				return api.Fail("InvalidParameterException", "The kubernetes group name %s is invalid, it cannot start with %s", group, prefix)
			}
		}
	}
	e.Username, e.KubernetesGroups, e.ModifiedAt = username, groups, r.now().Unix()
	return nil
}

// accessPolicies are the names of EKS's access policies that are supported here. Their permissions in the cluster are not.
var accessPolicies = []string{"AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"}

// association is an access policy of an access entry.
type association struct {
	PolicyARN    string `json:"policyArn"`
	AccessScope  any    `json:"accessScope"`
	AssociatedAt int64  `json:"associatedAt"`
	ModifiedAt   int64  `json:"modifiedAt"`
}

func accessPolicyContext(r *request, ctx iampolicy.Context) {
	entryContext(r, ctx)
	ctx.Set("eks:policyArn", r.params.Str("policyArn"))
}

func associateAccessPolicy(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	arn := r.params.Str("policyArn")
	name, ok := strings.CutPrefix(arn, "arn:"+r.who.account.Partition+":eks::aws:cluster-access-policy/")
	if !ok || !slices.Contains(accessPolicies, name) {
		return nil, api.Fail("InvalidParameterException", "The policyArn parameter format is not valid")
	}
	added := association{PolicyARN: arn, AccessScope: r.params["accessScope"], AssociatedAt: r.now().Unix(), ModifiedAt: r.now().Unix()}
	if before, ok := e.policies[arn]; ok {
		added.AssociatedAt = before.AssociatedAt
	}
	keepEntry(r, c, e.PrincipalARN)
	e.policies[arn] = added
	return map[string]any{"clusterName": e.ClusterName, "principalArn": e.PrincipalARN, "associatedAccessPolicy": added}, nil
}

func disassociateAccessPolicy(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	arn := r.params.Str("policyArn")
	if _, ok := e.policies[arn]; !ok {
		return nil, api.Fail("ResourceNotFoundException", "The specified policyArn %s is not associated with the access entry.", arn)
	}
	keepEntry(r, c, e.PrincipalARN)
	delete(e.policies, arn)
	return nil, nil
}

func listAssociatedAccessPolicies(r *request) (any, error) {
	_, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	all, token, err := eksPage(r, slices.Sorted(maps.Keys(e.policies)))
	if err != nil {
		return nil, err
	}
	list := make([]association, 0, len(all))
	for _, arn := range all {
		list = append(list, e.policies[arn])
	}
	out := map[string]any{"clusterName": e.ClusterName, "principalArn": e.PrincipalARN, "associatedAccessPolicies": list}
	if token != "" {
		out["nextToken"] = token
	}
	return out, nil
}
