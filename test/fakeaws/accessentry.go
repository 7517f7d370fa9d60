// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

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

	// PrincipalID is the unique ID that the principal had, which EKS tells nobody: another role of its name has no access.
	PrincipalID string `json:"-"`
	// AccessPolicies are the ARNs of the access policies that are associated with it.
	AccessPolicies []string `json:"-"`

	policies map[string]association
	// made are the parameters that the entry was made with, for requests that come again.
	made params
}

// AccessEntries gives the access entries of a cluster by their principals' ARNs.
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

// ChangeAccessEntry changes an access entry, as others may, and says whether there is one.
func (a *Account) ChangeAccessEntry(clusterARN, principal string, change func(*AccessEntry)) bool {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	c := a.clusters[clusterARN]
	if c == nil || c.entries[principal] == nil {
		return false
	}
	e := c.entries[principal]
	if change(e); e.Tags == nil {
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
