// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"strings"
)

// withTags adds tags to existing ones. IAM ignores the case of keys, and reserves AWS's own keys.
func withTags(have, add []Tag) ([]Tag, error) {
	out := slices.Clone(have)
	for i, tag := range add {
		if strings.HasPrefix(strings.ToLower(tag.Key), "aws:") {
			return nil, fail("InvalidInput", "User defined tag keys cannot start with 'aws:'")
		}
		if hasKey(add[:i], tag.Key) {
			return nil, fail("InvalidInput", "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		out = append(withoutTag(out, tag.Key), tag)
	}
	if len(out) > tagQuota {
		return nil, fail("LimitExceeded", "The number of tags has reached the maximum limit.")
	}
	return out, nil
}

func withoutTag(tags []Tag, key string) []Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(t Tag) bool { return strings.EqualFold(t.Key, key) })
}

func hasKey(tags []Tag, key string) bool {
	return slices.ContainsFunc(tags, func(t Tag) bool { return strings.EqualFold(t.Key, key) })
}

func tagRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	tags, err := withTags(found.tags, r.params.tags("Tags"))
	if err != nil {
		return nil, err
	}
	r.keepTags(found)
	found.tags = tags
	return nil, nil
}

func untagRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	r.keepTags(found)
	for _, key := range r.params.strs("TagKeys") {
		found.tags = withoutTag(found.tags, key)
	}
	return nil, nil
}

func listRoleTags(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	sorted := slices.SortedFunc(slices.Values(r.seenTags(found)), func(a, b Tag) int {
		return strings.Compare(strings.ToLower(a.Key), strings.ToLower(b.Key))
	})
	var out struct {
		Tags []Tag `xml:"Tags>member"`
		page
	}
	out.Tags, out.page, err = paginate(r, sorted, func(t Tag) string { return t.Key })
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
	Tags                     []Tag `xml:"Tags>member,omitempty"`
}

func (a *Account) xmlRole(r *role) xmlRole {
	return xmlRole{
		Path: r.path, RoleName: r.name, RoleID: r.id, Arn: r.arn, CreateDate: xmlTime(r.created), Description: r.description,
		AssumeRolePolicyDocument: uriEncode(a.trustText(r.trust), true), MaxSessionDuration: int(r.maxSession.Seconds()), Tags: r.tags,
		PermissionsBoundary: newXMLBoundary(r.boundary),
	}
}
