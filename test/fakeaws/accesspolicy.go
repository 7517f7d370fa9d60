// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
)

// accessPolicies are the names of EKS's access policies that are supported here. Their permissions in the cluster are not.
var accessPolicies = []string{"AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"}

// association is an access policy of an access entry.
type association struct {
	PolicyARN    string `json:"policyArn"`
	AccessScope  any    `json:"accessScope"`
	AssociatedAt int64  `json:"associatedAt"`
	ModifiedAt   int64  `json:"modifiedAt"`
}

func accessPolicyContext(r *request, ctx conditionContext) {
	entryContext(r, ctx)
	ctx.set("eks:policyArn", r.params.str("policyArn"))
}

func associateAccessPolicy(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	arn := r.params.str("policyArn")
	name, ok := strings.CutPrefix(arn, "arn:"+r.who.account.Partition+":eks::aws:cluster-access-policy/")
	if !ok || !slices.Contains(accessPolicies, name) {
		return nil, fail("InvalidParameterException", "The policyArn parameter format is not valid")
	}
	added := association{PolicyARN: arn, AccessScope: r.params["accessScope"], AssociatedAt: r.now().Unix(), ModifiedAt: r.now().Unix()}
	if before, ok := e.policies[arn]; ok {
		added.AssociatedAt = before.AssociatedAt
	}
	r.keepEntry(c, e.PrincipalARN)
	e.policies[arn] = added
	return map[string]any{"clusterName": e.ClusterName, "principalArn": e.PrincipalARN, "associatedAccessPolicy": added}, nil
}

func disassociateAccessPolicy(r *request) (any, error) {
	c, e, err := r.findEntry()
	if err != nil {
		return nil, err
	}
	arn := r.params.str("policyArn")
	if _, ok := e.policies[arn]; !ok {
		return nil, fail("ResourceNotFoundException", "The specified policyArn %s is not associated with the access entry.", arn)
	}
	r.keepEntry(c, e.PrincipalARN)
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
