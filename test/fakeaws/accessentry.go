// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
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
	made params
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
	if r.params.has("username") {
		username = r.params.str("username")
		if prefix := ownPrefix(username); prefix != "" {
			return fail("InvalidParameterException", "The username must not begin with %s", prefix)
		}
		if before, _, ok := strings.Cut(username, "{{SessionName"); ok && !strings.Contains(before, ":") {
			return fail("InvalidParameterException", "The username must have a colon before {{SessionName}}")
		}
	}
	if r.params.has("kubernetesGroups") {
		groups = r.params.strs("kubernetesGroups")
		for _, group := range groups {
			if prefix := ownPrefix(group); prefix != "" {
				return fail("InvalidParameterException", "The kubernetes group name %s is invalid, it cannot start with %s", group, prefix)
			}
		}
	}
	e.Username, e.KubernetesGroups, e.ModifiedAt = username, groups, r.now().Unix()
	return nil
}
