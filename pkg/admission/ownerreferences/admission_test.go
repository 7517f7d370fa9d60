// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ownerreferences_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/ownerreferences"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

var (
	missing = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "1"}
	another = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "there", UID: "2"}
)

// kind creates objects of one kind with owners.
type kind struct {
	group, resource, namespace string
	ofItsMaker                 bool
	object                     func(metav1.ObjectMeta) runtime.Object
}

var kinds = []kind{
	{cluster.GroupName, "managedclusters", "", false, func(m metav1.ObjectMeta) runtime.Object { return &cluster.ManagedCluster{ObjectMeta: m} }},
	{cluster.GroupName, "managedclustersets", "", false, func(m metav1.ObjectMeta) runtime.Object { return &cluster.ManagedClusterSet{ObjectMeta: m} }},
	{cluster.GroupName, "managedclustersetbindings", "ns", true,
		func(m metav1.ObjectMeta) runtime.Object { return &cluster.ManagedClusterSetBinding{ObjectMeta: m} }},
	{cluster.GroupName, "placements", "ns", true, func(m metav1.ObjectMeta) runtime.Object { return &cluster.Placement{ObjectMeta: m} }},
	{cluster.GroupName, "placementdecisions", "ns", false, func(m metav1.ObjectMeta) runtime.Object { return &cluster.PlacementDecision{ObjectMeta: m} }},
	{cluster.GroupName, "addonplacementscores", "ns", false, func(m metav1.ObjectMeta) runtime.Object { return &cluster.AddOnPlacementScore{ObjectMeta: m} }},
	{cluster.GroupName, "clusterclaims", "", false, func(m metav1.ObjectMeta) runtime.Object { return &cluster.ClusterClaim{ObjectMeta: m} }},
	{openmcp.GroupName, "clusterprofiles", "", false, func(m metav1.ObjectMeta) runtime.Object { return &openmcp.ClusterProfile{ObjectMeta: m} }},
	{openmcp.GroupName, "clusters", "ns", false, func(m metav1.ObjectMeta) runtime.Object { return &openmcp.Cluster{ObjectMeta: m} }},
	{openmcp.GroupName, "clusterrequests", "ns", true, func(m metav1.ObjectMeta) runtime.Object { return &openmcp.ClusterRequest{ObjectMeta: m} }},
	{openmcp.GroupName, "accessrequests", "ns", true, func(m metav1.ObjectMeta) runtime.Object { return &openmcp.AccessRequest{ObjectMeta: m} }},
	{work.GroupName, "manifestworks", "ns", true, func(m metav1.ObjectMeta) runtime.Object { return &work.ManifestWork{ObjectMeta: m} }},
	{work.GroupName, "appliedmanifestworks", "", false, func(m metav1.ObjectMeta) runtime.Object { return &work.AppliedManifestWork{ObjectMeta: m} }},
	{work.GroupName, "manifestworkreplicasets", "ns", true, func(m metav1.ObjectMeta) runtime.Object { return &work.ManifestWorkReplicaSet{ObjectMeta: m} }},
}

func (k kind) owned(by ...metav1.OwnerReference) runtime.Object {
	return k.object(metav1.ObjectMeta{Name: "a", Namespace: k.namespace, OwnerReferences: by})
}

func (k kind) attributes(object, old runtime.Object, subresource string) admission.Attributes {
	return at.Request{Object: object, Old: old, Group: k.group, Resource: k.resource, Subresource: subresource}.Attributes()
}

func (k kind) delete() rbac.Permission {
	rule := at.Rule("delete", k.group, k.resource, "a")
	rule.Namespace = k.namespace
	return rule
}

func plugin(a *at.Authorizer) *ownerreferences.Plugin {
	p := ownerreferences.New()
	p.SetAuthorizer(a)
	return p
}

func TestAdmission_ChangeNeedsDeletePermission(t *testing.T) {
	for _, k := range kinds {
		for _, subresource := range []string{"", "status", "label", "accept", "unknown"} {
			for what, c := range map[string]struct{ before, after runtime.Object }{
				"add":      {k.owned(), k.owned(missing)},
				"one more": {k.owned(another), k.owned(another, missing)},
				"replace":  {k.owned(another), k.owned(missing)},
				"remove":   {k.owned(another), k.owned()},
			} {
				a := &at.Authorizer{}
				attributes := k.attributes(c.after, c.before, subresource)
				_, err := at.Validate(t, plugin(a), attributes)
				if rules := at.MissingRules(t, err); len(a.Asked) != 1 || a.Asked[0] != k.delete() || len(rules) != 1 || rules[0].Verb != "delete" {
					t.Errorf("%s/%s, %s: %v, asked %v", k.resource, subresource, what, err, a.Asked)
				}
				if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{k.delete()}}), attributes); err != nil {
					t.Errorf("%s/%s, %s, by who may delete it: %v", k.resource, subresource, what, err)
				}
			}
		}
	}
}

func TestAdmission_CreateWithOwnerNeedsDeletePermission(t *testing.T) {
	for _, k := range kinds {
		for name, attributes := range map[string]admission.Attributes{
			"named":     k.attributes(k.owned(missing), nil, ""),
			"generated": k.attributes(k.object(metav1.ObjectMeta{GenerateName: "a-", Namespace: k.namespace, OwnerReferences: []metav1.OwnerReference{missing}}), nil, ""),
		} {
			_, err := at.Validate(t, plugin(&at.Authorizer{}), attributes)
			if apierrors.IsForbidden(err) == k.ofItsMaker {
				t.Errorf("%s, %s: %v", k.resource, name, err)
			}
		}
		if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{k.delete()}}), k.attributes(k.owned(missing), nil, "")); err != nil {
			t.Errorf("%s, by who may delete it: %v", k.resource, err)
		}
	}
}

func TestAdmission_UnchangedReferencesAreNotChecked(t *testing.T) {
	for _, k := range kinds {
		a := &at.Authorizer{Err: errors.New("not to be asked")}
		for _, attributes := range []admission.Attributes{
			k.attributes(k.owned(), k.owned(), ""), k.attributes(k.owned(missing), k.owned(missing), ""), k.attributes(k.owned(), nil, ""),
			// This is not stored, like a token.
			k.attributes(k.owned(missing), nil, "token"),
		} {
			if _, err := at.Validate(t, plugin(a), attributes); err != nil || len(a.Asked) > 0 {
				t.Errorf("%s: %v, asked %v", k.resource, err, a.Asked)
			}
		}
	}
}

func TestAdmission_DeniesOnAuthorizerError(t *testing.T) {
	k := kinds[0]
	_, err := at.Validate(t, plugin(&at.Authorizer{Err: errors.New("connection refused")}), k.attributes(k.owned(missing), k.owned(), ""))
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if err := ownerreferences.New().ValidateInitialization(); err == nil {
		t.Error("it starts without an authorizer")
	}
}
