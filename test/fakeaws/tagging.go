// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

// Tagging is which right EKS asks for when an access entry is made with tags. AWS does not say.
type Tagging int

const (
	// TagsNeedBoth asks for eks:TagResource on the cluster and on the entry. It is the strictest, and the default.
	TagsNeedBoth Tagging = iota
	// TagsNeedCluster asks for it on the cluster.
	TagsNeedCluster
	// TagsNeedEntry asks for it on the entry.
	TagsNeedEntry
	// TagsRefused lets nobody tag anything of EKS, whatever the policies, as an organization's own policy may.
	TagsRefused
)

// SetTagging makes EKS ask so from now on.
func (s *Server) SetTagging(t Tagging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tagging = t
}

const tagResourceAction = "eks:TagResource"

// tagOnCreateNeeds are the rights to tag what is being made.
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

// tagContext tells which tags the request has.
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
