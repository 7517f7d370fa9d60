// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"slices"
	"strings"
)

// withTags adds tags to existing ones. IAM ignores the case of keys, and reserves AWS's own keys.
func withTags(have, add []api.Tag) ([]api.Tag, error) {
	out := slices.Clone(have)
	for i, tag := range add {
		if strings.HasPrefix(strings.ToLower(tag.Key), "aws:") {
			return nil, api.Fail("InvalidInput", "User defined tag keys cannot start with 'aws:'")
		}
		if hasKey(add[:i], tag.Key) {
			return nil, api.Fail("InvalidInput", "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		out = append(withoutTag(out, tag.Key), tag)
	}
	if len(out) > tagQuota {
		return nil, api.Fail("LimitExceeded", "The number of tags has reached the maximum limit.")
	}
	return out, nil
}

func withoutTag(tags []api.Tag, key string) []api.Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(t api.Tag) bool { return strings.EqualFold(t.Key, key) })
}

func hasKey(tags []api.Tag, key string) bool {
	return slices.ContainsFunc(tags, func(t api.Tag) bool { return strings.EqualFold(t.Key, key) })
}

func tagRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	tags, err := withTags(found.tags, r.params.Tags("Tags"))
	if err != nil {
		return nil, err
	}
	keepTags(r, found)
	found.tags = tags
	return nil, nil
}

func untagRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	keepTags(r, found)
	for _, key := range r.params.Strs("TagKeys") {
		found.tags = withoutTag(found.tags, key)
	}
	return nil, nil
}

func listRoleTags(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	sorted := slices.SortedFunc(slices.Values(seenTags(r, found)), func(a, b api.Tag) int {
		return strings.Compare(strings.ToLower(a.Key), strings.ToLower(b.Key))
	})
	var out struct {
		Tags []api.Tag `xml:"Tags>member"`
		page
	}
	out.Tags, out.page, err = paginate(r, sorted, func(t api.Tag) string { return t.Key })
	return out, err
}

// xmlRole is a role in IAM's responses.
type xmlRole struct {
	Path, RoleName           string
	RoleID                   string `xml:"RoleId"`
	Arn                      string
	CreateDate               xmlTime
	AssumeRolePolicyDocument string
	Description              string `xml:",omitempty"`
	MaxSessionDuration       int
	PermissionsBoundary      *xmlBoundary
	Tags                     []api.Tag `xml:"Tags>member,omitempty"`
}

func newXMLRole(a *Account, r *role) xmlRole {
	return xmlRole{
		Path: r.path, RoleName: r.name, RoleID: r.id, Arn: r.arn, CreateDate: xmlTime(r.created), Description: r.description,
		AssumeRolePolicyDocument: api.URIEncode(trustText(a, r.trust), true), MaxSessionDuration: int(r.maxSession.Seconds()), Tags: r.tags,
		PermissionsBoundary: newXMLBoundary(r.boundary),
	}
}

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

const tagResourceAction = "eks:TagResource"

// tagOnCreateNeeds returns the permissions to tag what is created.
func tagOnCreateNeeds(r *request, cluster, made string) []right {
	if !r.params.Has("tags") {
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
func tagContext(r *request, ctx iampolicy.Context) {
	var keys []string
	for _, param := range []string{"tags", "Tags"} {
		for _, tag := range r.params.Tags(param) {
			keys = append(keys, tag.Key)
			ctx.Set("aws:RequestTag/"+tag.Key, tag.Value)
		}
	}
	ctx.Set("aws:TagKeys", keys...)
}
