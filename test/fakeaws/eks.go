// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Cluster describes an EKS cluster.
type Cluster struct {
	Name string
	// Region is the account's by default.
	Region string
	// Endpoint, CA (in PEM) and Issuer are those of the kube-apiserver that represents the cluster.
	Endpoint string
	CA       []byte
	Issuer   string
	// AuthenticationMode is API_AND_CONFIG_MAP by default. With CONFIG_MAP there are no access entries, and with API there is nothing else.
	AuthenticationMode string
}

const (
	modeAPI       = "API"
	modeConfigMap = "CONFIG_MAP"
	modeBoth      = "API_AND_CONFIG_MAP"
)

type cluster struct {
	Cluster
	arn     string
	created time.Time
	tags    map[string]string
	// awsAuth handles token reviews for the ConfigMap.
	awsAuth http.Handler
	// entries and pastEntries are by the principal's ARN.
	entries     map[string]*AccessEntry
	pastEntries map[string]*past[*AccessEntry]
}

// AddCluster adds a cluster and returns its ARN.
func (a *Account) AddCluster(c Cluster) string {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	if c.Region == "" {
		c.Region = a.Region
	}
	if c.AuthenticationMode == "" {
		c.AuthenticationMode = modeBoth
	}
	added := &cluster{
		Cluster: c, arn: a.arn("eks", c.Region, "cluster/"+c.Name), created: a.server.now(),
		tags: map[string]string{}, entries: map[string]*AccessEntry{}, pastEntries: map[string]*past[*AccessEntry]{},
	}
	a.clusters[added.arn] = added
	return added.arn
}

func eksOperations() []operation {
	const notFound, invalid = "ResourceNotFoundException", "InvalidParameterException"
	onCluster := func(r *request) []right { return []right{{r.op.action(), r.clusterARN()}} }
	onEntry := func(r *request) []right { return []right{{r.op.action(), r.entryARN()}} }
	onTagged := func(r *request) []right { return []right{{r.op.action(), r.params.Str("resourceArn")}} }
	return []operation{
		{service: "eks", name: "CreateAccessEntry", write: true, needs: createAccessEntryNeeds, context: createAccessEntryContext,
			run:   createAccessEntry,
			fails: []string{notFound, invalid, "InvalidRequestException", "ResourceInUseException"}},
		{service: "eks", name: "DescribeAccessEntry", needs: onEntry, context: entryContext, run: describeAccessEntry,
			fails: []string{notFound, "InvalidRequestException"}},
		{service: "eks", name: "UpdateAccessEntry", write: true, needs: onEntry, context: entryContext, run: updateAccessEntry,
			fails: []string{notFound, invalid, "InvalidRequestException"}},
		{service: "eks", name: "DeleteAccessEntry", write: true, needs: onEntry, context: entryContext, run: deleteAccessEntry,
			fails: []string{notFound, "InvalidRequestException"}},
		{service: "eks", name: "ListAccessEntries", needs: onCluster, run: listAccessEntries,
			fails: []string{notFound, invalid, "InvalidRequestException"}},
		{service: "eks", name: "AssociateAccessPolicy", write: true, needs: onEntry, context: accessPolicyContext, run: associateAccessPolicy,
			fails: []string{notFound, invalid, "InvalidRequestException"}},
		{service: "eks", name: "DisassociateAccessPolicy", write: true, needs: onEntry, context: accessPolicyContext,
			run: disassociateAccessPolicy, fails: []string{notFound, "InvalidRequestException"}},
		{service: "eks", name: "ListAssociatedAccessPolicies", needs: onEntry, context: entryContext, run: listAssociatedAccessPolicies,
			fails: []string{notFound, "InvalidRequestException"}},
		{service: "eks", name: "TagResource", write: true, needs: onTagged, context: tagContext, run: tagResource,
			fails: []string{"NotFoundException", "BadRequestException"}},
		{service: "eks", name: "UntagResource", write: true, needs: onTagged, run: untagResource, fails: []string{"NotFoundException"}},
		{service: "eks", name: "DescribeCluster", needs: onCluster, run: describeCluster, fails: []string{notFound}},
	}
}

func (r *request) clusterARN() string {
	name := r.params.Str("clusterName")
	if name == "" {
		name = r.params.Str("name")
	}
	return r.who.account.arn("eks", r.region, "cluster/"+name)
}

// entryARN returns the ARN of the access entry that the request names, whether it exists or not.
func (r *request) entryARN() string {
	cluster, principal := r.params.Str("clusterName"), r.params.Str("principalArn")
	sum := md5.Sum([]byte(r.who.account.ID + " " + cluster + " " + principal))
	account, kind, name := "", "role", ""
	if part := strings.SplitN(principal, ":", 6); len(part) == 6 {
		account = part[4]
		kind, name, _ = strings.Cut(part[5], "/")
		name = name[strings.LastIndex(name, "/")+1:]
	}
	return r.who.account.arn("eks", r.region, fmt.Sprintf("access-entry/%s/%s/%s/%s/%x-%x-%x-%x-%x",
		cluster, kind, account, name, sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:]))
}

func createAccessEntryNeeds(r *request) []right {
	return append([]right{{"eks:CreateAccessEntry", r.clusterARN()}}, tagOnCreateNeeds(r, r.clusterARN(), r.entryARN())...)
}

// createAccessEntryContext sets the condition keys of AWS's service authorization reference, as far as they are supported here. Parameters that the
// request does not have have no value.
func createAccessEntryContext(r *request, ctx iampolicy.Context) {
	tagContext(r, ctx)
	ctx.Set("eks:principalArn", r.params.Str("principalArn"))
	ctx.Set("eks:accessEntryType", "STANDARD")
	if kind := r.params.Str("type"); kind != "" {
		ctx.Set("eks:accessEntryType", kind)
	}
	if r.params.Has("username") {
		ctx.Set("eks:username", r.params.Str("username"))
	}
	ctx.Set("eks:kubernetesGroups", r.params.Strs("kubernetesGroups")...)
}

// entryContext sets the condition keys of the access entry.
func entryContext(r *request, ctx iampolicy.Context) {
	ctx.Set("eks:principalArn", r.params.Str("principalArn"))
	ctx.Set("eks:clusterName", r.params.Str("clusterName"))
}

func (r *request) findCluster() (*cluster, error) {
	if c := r.who.account.clusters[r.clusterARN()]; c != nil {
		return c, nil
	}
	name := r.clusterARN()
	return nil, api.Fail("ResourceNotFoundException", "No cluster found for name: %s.", name[strings.LastIndex(name, "/")+1:])
}

// entriesOf returns the cluster that the request names, if it supports access entries.
func (r *request) entriesOf() (*cluster, error) {
	c, err := r.findCluster()
	if err == nil && c.AuthenticationMode == modeConfigMap {
		return nil, api.Fail("InvalidRequestException", "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
	}
	return c, err
}

func (r *request) findEntry() (*cluster, *AccessEntry, error) {
	c, err := r.entriesOf()
	if err != nil {
		return nil, nil, err
	}
	principal := r.params.Str("principalArn")
	e := c.entries[principal]
	if !r.op.write {
		e = seenEntry(r.Server, c, principal)
	}
	if e != nil {
		return c, e, nil
	}
	return nil, nil, api.Fail("ResourceNotFoundException",
		"The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'.")
}

func createAccessEntry(r *request) (any, error) {
	c, err := r.entriesOf()
	if err != nil {
		return nil, err
	}
	principal := r.params.Str("principalArn")
	if e := c.entries[principal]; e != nil {
		if again := r.params.Str("clientRequestToken"); again != "" && reflect.DeepEqual(e.made, r.params) {
			return entryAnswer(e), nil
		}
		return nil, api.Fail("ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
	}
	if kind := r.params.Str("type"); kind != "" && kind != "STANDARD" {
		return nil, api.Unsupported("access entries of type " + kind)
	}
	id, known := "", false
	if strings.Contains(principal, ":role/") || strings.Contains(principal, ":user/") {
		id, known = resolverOf(r.Server, r.who.account.Partition)(principal)
	}
	if !known {
		return nil, api.Fail("InvalidParameterException", "The specified principalArn is invalid: invalid principal.")
	}
	e := &AccessEntry{
		ARN: r.entryARN(), ClusterName: c.Name, PrincipalARN: principal, Username: defaultUsername(principal), Type: "STANDARD",
		KubernetesGroups: []string{}, Tags: map[string]string{}, CreatedAt: r.now().Unix(), PrincipalID: id, made: r.params,
		policies: map[string]association{},
	}
	if err := e.set(r); err != nil {
		return nil, err
	}
	for _, tag := range r.params.Tags("tags") {
		e.Tags[tag.Key] = tag.Value
	}
	keepEntry(r, c, principal)
	c.entries[principal] = e
	return entryAnswer(e), nil
}

func entryAnswer(e *AccessEntry) any { return map[string]any{"accessEntry": e.copy()} }

// copy returns a snapshot, which is sent to the client after the server is unlocked.
func (e *AccessEntry) copy() AccessEntry {
	out := *e
	out.KubernetesGroups, out.Tags = slices.Clone(e.KubernetesGroups), maps.Clone(e.Tags)
	out.AccessPolicies = slices.Sorted(maps.Keys(e.policies))
	return out
}

func describeAccessEntry(r *request) (any, error) {
	_, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	return entryAnswer(e), nil
}

func updateAccessEntry(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	keepEntry(r, c, e.PrincipalARN)
	if err := e.set(r); err != nil {
		return nil, err
	}
	return entryAnswer(e), nil
}

func deleteAccessEntry(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	keepEntry(r, c, e.PrincipalARN)
	delete(c.entries, e.PrincipalARN)
	return nil, nil
}

func listAccessEntries(r *request) (any, error) {
	c, err := r.entriesOf()
	if err != nil {
		return nil, err
	}
	shown := slices.Sorted(maps.Keys(c.pastEntries)) // also of deleted entries
	shown = slices.DeleteFunc(shown, func(principal string) bool { return seenEntry(r.Server, c, principal) == nil })
	all, token, err := eksPage(r, shown)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"accessEntries": all}
	if token != "" {
		out["nextToken"] = token
	}
	return out, nil
}

// eksPage returns the page of a sorted list that the request is for, and the token of the next page.
func eksPage(r *request, all []string) (some []string, next string, err error) {
	if token := r.params.Str("nextToken"); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", api.Fail("ValidationError", "nextToken is invalid")
		}
		i, found := slices.BinarySearch(all, string(last))
		if found {
			i++
		}
		all = all[i:]
	}
	if n := r.params.Num("maxResults", 100); n < len(all) {
		return all[:n], base64.RawURLEncoding.EncodeToString([]byte(all[n-1])), nil
	}
	return all, "", nil
}

func describeCluster(r *request) (any, error) {
	c, err := r.findCluster()
	if err != nil {
		return nil, err
	}
	return map[string]any{"cluster": map[string]any{
		"name": c.Name, "arn": c.arn, "status": "ACTIVE", "createdAt": c.created.Unix(), "endpoint": c.Endpoint, "tags": maps.Clone(c.tags),
		"certificateAuthority": map[string]string{"data": base64.StdEncoding.EncodeToString(c.CA)},
		"identity":             map[string]any{"oidc": map[string]string{"issuer": c.Issuer}},
		"accessConfig":         map[string]string{"authenticationMode": c.AuthenticationMode},
	}}, nil
}

// tagged returns the tags of the cluster or access entry that the request names.
func (r *request) tagged() (map[string]string, error) {
	arn := r.params.Str("resourceArn")
	for _, c := range r.who.account.clusters {
		if c.Region != r.region {
			continue
		}
		if c.arn == arn {
			return c.tags, nil
		}
		for _, e := range c.entries {
			if e.ARN == arn {
				keepEntry(r, c, e.PrincipalARN)
				return e.Tags, nil
			}
		}
	}
	return nil, api.Fail("NotFoundException", "Unable to find the requested resource %s", arn)
}

func tagResource(r *request) (any, error) {
	tags, err := r.tagged()
	if err != nil {
		return nil, err
	}
	merged := maps.Clone(tags)
	for _, tag := range r.params.Tags("tags") {
		merged[tag.Key] = tag.Value
	}
	if len(merged) > tagQuota {
		return nil, api.Fail("BadRequestException", "The number of tags has reached the maximum limit.")
	}
	maps.Copy(tags, merged)
	return nil, nil
}

func untagResource(r *request) (any, error) {
	tags, err := r.tagged()
	if err != nil {
		return nil, err
	}
	for _, key := range r.params.Strs("tagKeys") {
		delete(tags, key)
	}
	return nil, nil
}
