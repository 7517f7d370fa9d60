// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

// Tagging is the permission that EKS requires to create an access entry with tags. AWS does not document it.
type Tagging int

const (
	// TagsNeedBoth requires eks:TagResource on the cluster and on the entry. It is the strictest, and the default.
	TagsNeedBoth Tagging = iota
	// TagsNeedCluster requires it on the cluster.
	TagsNeedCluster
	// TagsNeedEntry requires it on the entry.
	TagsNeedEntry
	// TagsRefused rejects tags in all requests to EKS, whatever the policies, as a policy of an organization may.
	TagsRefused
)

// SetTagging sets what EKS requires from now on.
func (s *Server) SetTagging(t Tagging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tagging = t
}

const tagResourceAction = "eks:TagResource"

// tagOnCreateNeeds returns the permissions to tag what is created.
func (r *request) tagOnCreateNeeds(cluster, made string) []right {
	if !r.params.has("tags") {
		return nil
	}
	onCluster, onMade := right{tagResourceAction, cluster}, right{tagResourceAction, made}
	switch r.tagging {
	case TagsNeedCluster:
		return []right{onCluster}
	case TagsNeedEntry:
		return []right{onMade}
	}
	return []right{onCluster, onMade}
}

// tagContext sets the condition keys of the request's tags.
func tagContext(r *request, ctx conditionContext) {
	var keys []string
	for _, param := range []string{"tags", "Tags"} {
		for _, tag := range r.params.tags(param) {
			keys = append(keys, tag.Key)
			ctx.set("aws:RequestTag/"+tag.Key, tag.Value)
		}
	}
	ctx.set("aws:TagKeys", keys...)
}
