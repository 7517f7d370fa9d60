// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubfinalizers_test

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

type kind struct {
	group, resource, namespace string
	hubs, others               []string
	object                     func(metav1.ObjectMeta) runtime.Object
}

var kinds = []kind{
	{cluster.GroupName, "managedclusters", "",
		[]string{"cluster.open-cluster-management.io/api-resource-cleanup", "cluster.open-cluster-management.io/resource-cleanup"},
		[]string{"example.com/a", "import.open-cluster-management.io/cleanup", "orphan", "foregroundDeletion"},
		func(m metav1.ObjectMeta) runtime.Object { return &cluster.ManagedCluster{ObjectMeta: m} }},
	{openmcp.GroupName, "clusters", "ns",
		[]string{"access.clusters.openmcp.cloud/requests", "request.clusters.openmcp.cloud/4711"},
		[]string{"example.com/a", "gardener.clusters.openmcp.cloud/cluster", "clusters.openmcp.cloud/finalizer", "foregroundDeletion"},
		func(m metav1.ObjectMeta) runtime.Object { return &openmcp.Cluster{ObjectMeta: m} }},
	{openmcp.GroupName, "clusterrequests", "ns",
		[]string{"clusters.openmcp.cloud/request"}, []string{"clusters.openmcp.cloud/clusteraccess", "example.com/a"},
		func(m metav1.ObjectMeta) runtime.Object { return &openmcp.ClusterRequest{ObjectMeta: m} }},
	{work.GroupName, "manifestworkreplicasets", "ns",
		[]string{"work.open-cluster-management.io/manifest-work-cleanup"},
		[]string{"example.com/a", "cluster.open-cluster-management.io/manifest-work-cleanup", "foregroundDeletion", "orphan"},
		func(m metav1.ObjectMeta) runtime.Object { return &work.ManifestWorkReplicaSet{ObjectMeta: m} }},
	{edge.GroupName, "edgeplacements", "ns",
		[]string{"edge.clusterhub.dev/work"}, []string{"example.com/a", "foregroundDeletion", "orphan"},
		func(m metav1.ObjectMeta) runtime.Object { return &edge.EdgePlacement{ObjectMeta: m} }},
	{openmcp.GroupName, "accessrequests", "ns", nil,
		[]string{"clusters.openmcp.cloud/clusteraccess", "gardener.clusters.openmcp.cloud/accessrequest", "clusters.openmcp.cloud/finalizer"},
		func(m metav1.ObjectMeta) runtime.Object { return &openmcp.AccessRequest{ObjectMeta: m} }},
	{cluster.GroupName, "managedclustersets", "", nil, []string{"cluster.open-cluster-management.io/a"},
		func(m metav1.ObjectMeta) runtime.Object { return &cluster.ManagedClusterSet{ObjectMeta: m} }},
}

func (k kind) held(finalizers ...string) runtime.Object {
	return k.object(metav1.ObjectMeta{Name: "a", Namespace: k.namespace, Finalizers: finalizers})
}

func (k kind) dying(finalizers ...string) runtime.Object {
	return k.object(metav1.ObjectMeta{Name: "a", Namespace: k.namespace, Finalizers: finalizers, DeletionTimestamp: &metav1.Time{}})
}

func (k kind) attributes(object, old runtime.Object, subresource string) admission.Attributes {
	return at.Request{Object: object, Old: old, Group: k.group, Resource: k.resource, Subresource: subresource}.Attributes()
}

func (k kind) rule(subresource string) rbac.Permission {
	rule := at.Rule("update", k.group, k.resource+"/"+subresource, "a")
	rule.Namespace = k.namespace
	return rule
}

func plugin(a *at.Authorizer) *hubfinalizers.Plugin {
	p := hubfinalizers.New()
	p.SetAuthorizer(a)
	return p
}

func TestAdmission_HubFinalizersNeedPermission(t *testing.T) {
	for _, k := range kinds {
		for _, f := range k.hubs {
			own := []string{"example.com/own", f}
			for what, attributes := range map[string]admission.Attributes{
				"add":                     k.attributes(k.held(own...), k.held("example.com/own"), ""),
				"remove":                  k.attributes(k.held("example.com/own"), k.held(own...), ""),
				"remove all":              k.attributes(k.held(), k.held(own...), ""),
				"replace":                 k.attributes(k.held(f+"x"), k.held(f), ""),
				"let go":                  k.attributes(k.dying(), k.dying(f), ""),
				"remove by a subresource": k.attributes(k.held(), k.held(f), "status"),
				"create":                  k.attributes(k.held(f), nil, ""),
				"create, generated": k.attributes(k.object(metav1.ObjectMeta{
					GenerateName: "a-", Namespace: k.namespace, Finalizers: []string{f}}), nil, ""),
			} {
				_, err := at.Validate(t, plugin(&at.Authorizer{}), attributes)
				if rules := at.MissingRules(t, unlessGenerated(attributes, err)); len(rules) > 1 {
					t.Errorf("%s of %s of %s: %v", what, f, k.resource, err)
				}
				grants := []rbac.Permission{k.rule("finalizers")}
				if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: grants}), attributes); (err == nil) != (attributes.GetName() == "a") {
					t.Errorf("%s of %s of %s, with the right: %v", what, f, k.resource, err)
				}
			}
		}
	}
}

// unlessGenerated returns the error. For an object with a generated name it returns one without rules, because they have no name.
func unlessGenerated(a admission.Attributes, err error) error {
	if a.GetName() == "" && apierrors.IsForbidden(err) {
		return apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("generated"))
	}
	return err
}

func TestAdmission_OtherFinalizersAreAllowed(t *testing.T) {
	for _, k := range kinds {
		for _, f := range k.others {
			stays := slices.Concat(k.hubs, []string{"example.com/stays"})
			a := &at.Authorizer{Err: errors.New("not to be asked")}
			for _, attributes := range []admission.Attributes{
				k.attributes(k.held(append(stays, f)...), k.held(stays...), ""), k.attributes(k.held(stays...), k.held(append(stays, f)...), ""),
				k.attributes(k.held(f), nil, ""), k.attributes(k.dying(), k.dying(f), ""),
			} {
				if k.resource == "managedclusters" && attributes.GetOperation() == admission.Create {
					continue
				}
				if _, err := at.Validate(t, plugin(a), attributes); err != nil || len(a.Asked) > 0 {
					t.Errorf("%s of %s: %v, asked %v", f, k.resource, err, a.Asked)
				}
			}
		}
	}
}

// TestAdmission_AcceptersMayChangeFinalizers verifies that users who may accept a cluster may change its finalizers: upstream's controllers
// have no other permission for that.
func TestAdmission_AcceptersMayChangeFinalizers(t *testing.T) {
	k := kinds[0]
	register := k.rule("accept")
	register.Group = permission.RegisterGroup
	for _, rule := range []rbac.Permission{k.rule("accept"), register} {
		for _, attributes := range []admission.Attributes{
			k.attributes(k.held(k.hubs...), k.held(), ""), k.attributes(k.dying(), k.dying(k.hubs...), ""),
		} {
			if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{rule}}), attributes); err != nil {
				t.Errorf("%v: %v", rule, err)
			}
		}
	}
	other := kinds[1]
	_, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{other.rule("accept")}}),
		other.attributes(other.held(other.hubs...), other.held(), ""))
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v", other.resource, err)
	}
}

// TestAdmission_CreatorsCannotAddFinalizers verifies that holders of a bootstrap token, who create clusters and change none, cannot
// create one that stays after an admin deletes it. It would reserve its name, and its place among the pending clusters.
func TestAdmission_CreatorsCannotAddFinalizers(t *testing.T) {
	k := kinds[0]
	for _, f := range append(k.others, k.hubs...) {
		creation := k.attributes(k.held(f), nil, "")
		if _, err := at.Validate(t, plugin(&at.Authorizer{}), creation); !apierrors.IsForbidden(err) {
			t.Errorf("%s, with the right to make a cluster alone: %v", f, err)
		}
		for _, subresource := range []string{"finalizers", "accept"} {
			if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{k.rule(subresource)}}), creation); err != nil {
				t.Errorf("%s, with %s: %v", f, subresource, err)
			}
		}
	}
	update := at.Rule("update", k.group, k.resource, "a")
	for _, f := range k.others {
		if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{update}}), k.attributes(k.held(f), nil, "")); err != nil {
			t.Errorf("%s, with the right to add it later: %v", f, err)
		}
	}
}
