// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubstatus

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func agent(name string) user.Info {
	return &user.DefaultInfo{Name: registration.ClusterUser(name, "a1"), Groups: []string{registration.ClusterGroup(name), registration.ManagedClustersGroup}}
}

var users = map[string]user.Info{
	"a user":                 at.User,
	"an admin":               &user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}},
	"its agent":              agent("c1"),
	"its agent, by AWS":      &user.DefaultInfo{Name: "arn:x", Groups: []string{registration.AWSGroup("c1"), registration.AWSManagedClustersGroup}},
	"the agent of another":   agent("c2"),
	"an agent of two":        &user.DefaultInfo{Name: registration.ClusterUser("c1", "a"), Groups: []string{registration.ClusterGroup("c1"), registration.ClusterGroup("c2"), registration.ManagedClustersGroup}},
	"a group of people":      &user.DefaultInfo{Name: "eve", Groups: []string{registration.ClusterGroup("c1")}},
	"an addon's agent":       &user.DefaultInfo{Name: "system:open-cluster-management:cluster:c1:addon:x", Groups: []string{"system:open-cluster-management:cluster:c1:addon:x"}},
	"hub-controller-manager": &user.DefaultInfo{Name: "system:serviceaccount:clusterhub-system:hub-controller-manager"},
	"another ServiceAccount": &user.DefaultInfo{Name: "system:serviceaccount:clusterhub-system:hub-apiserver"},
	"one of its name":        &user.DefaultInfo{Name: "system:serviceaccount:shop:hub-controller-manager"},
}

func TestPermissions(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "c1"}
	facts := edge.EdgeNodeStatus{Arch: "amd64"}
	counts := edge.DeploymentStatus{Nodes: edge.NodeCounts{Placed: 1}}
	place := edge.EdgePlacementSpec{Node: "c1"}
	for name, c := range map[string]struct {
		request at.Request
		may     []string
	}{
		"facts": {at.Request{Resource: "edgenodes", Subresource: "status", Object: &edge.EdgeNode{ObjectMeta: meta, Status: facts}, Old: &edge.EdgeNode{ObjectMeta: meta}},
			[]string{"its agent", "its agent, by AWS"}},
		"facts that are taken away": {at.Request{Resource: "edgenodes", Subresource: "status", Object: &edge.EdgeNode{ObjectMeta: meta}, Old: &edge.EdgeNode{ObjectMeta: meta, Status: facts}},
			[]string{"its agent", "its agent, by AWS"}},
		"facts by another path": {at.Request{Resource: "edgenodes", Object: &edge.EdgeNode{ObjectMeta: meta, Status: facts}, Old: &edge.EdgeNode{ObjectMeta: meta}},
			[]string{"its agent", "its agent, by AWS"}},
		"facts of a new node": {at.Request{Resource: "edgenodes", Object: &edge.EdgeNode{ObjectMeta: meta, Status: facts}},
			[]string{"its agent", "its agent, by AWS"}},
		"the status of a policy": {at.Request{Resource: "deploymentpolicies", Subresource: "status", Object: &edge.DeploymentPolicy{Status: counts}, Old: &edge.DeploymentPolicy{}},
			[]string{"hub-controller-manager"}},
		"the status of a pattern": {at.Request{Resource: "deploymentpatterns", Subresource: "status", Object: &edge.DeploymentPattern{Status: counts}, Old: &edge.DeploymentPattern{}},
			[]string{"hub-controller-manager"}},
		"a placement, empty":             {at.Request{Resource: "edgeplacements", Object: &edge.EdgePlacement{}}, []string{"hub-controller-manager"}},
		"a placement":                    {at.Request{Resource: "edgeplacements", Object: &edge.EdgePlacement{Spec: place}}, []string{"hub-controller-manager"}},
		"a placement, dry run":           {at.Request{Resource: "edgeplacements", Object: &edge.EdgePlacement{Spec: place}, DryRun: true}, []string{"hub-controller-manager"}},
		"another service in a placement": {at.Request{Resource: "edgeplacements", Object: &edge.EdgePlacement{Spec: place}, Old: &edge.EdgePlacement{}}, []string{"hub-controller-manager"}},
		"the status of a placement": {at.Request{Resource: "edgeplacements", Subresource: "status",
			Object: &edge.EdgePlacement{Status: edge.EdgePlacementStatus{State: edge.PlacementRunning}}, Old: &edge.EdgePlacement{}}, []string{"hub-controller-manager"}},
	} {
		c.request.Group = edge.GroupName
		for who, by := range users {
			c.request.By = by
			_, err := at.Validate(t, New(), c.request.Attributes())
			allowed := false
			for _, may := range c.may {
				allowed = allowed || who == may
			}
			if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s by %s: %v, want allowed: %t", name, who, err, allowed)
			}
		}
	}
}

// TestIgnoresOtherChanges verifies that other changes are admitted: other plugins check specs, and RBAC metadata, which the garbage collector and the
// namespace controller change.
func TestIgnoresOtherChanges(t *testing.T) {
	labelled := metav1.ObjectMeta{Name: "c1", Labels: map[string]string{"a": "b"}}
	running := edge.EdgePlacementStatus{State: edge.PlacementRunning}
	for _, r := range []at.Request{
		{Resource: "edgenodes", Object: &edge.EdgeNode{Spec: edge.EdgeNodeSpec{Pattern: "a/b"}}, Old: &edge.EdgeNode{}},
		{Resource: "edgenodes", Object: &edge.EdgeNode{ObjectMeta: labelled}},
		{Resource: "deploymentpolicies", Object: &edge.DeploymentPolicy{Spec: edge.DeploymentPolicySpec{Label: "x"}}},
		{Resource: "deploymentpatterns", Object: &edge.DeploymentPattern{Spec: edge.DeploymentPatternSpec{Label: "x"}}},
		{Resource: "edgeservices", Object: &edge.EdgeService{Status: edge.EdgeServiceStatus{Objects: 1}}},
		{Resource: "edgeplacements", Object: &edge.EdgePlacement{ObjectMeta: labelled, Status: running}, Old: &edge.EdgePlacement{Status: running}},
		{Group: "cluster.open-cluster-management.io", Object: at.Cluster("c1")},
	} {
		if r.Group == "" {
			r.Group = edge.GroupName
		}
		if _, err := at.Validate(t, New(), r.Attributes()); err != nil {
			t.Errorf("%s: %v", r.Resource, err)
		}
	}
	if New().Handles("DELETE") {
		t.Error("deletions are looked at: who ends a namespace deletes its placements")
	}
}

func TestRejectsOtherTypes(t *testing.T) {
	r := at.Request{Group: edge.GroupName, Resource: "edgenodes", Object: at.Cluster("c1")}
	if _, err := at.Validate(t, New(), r.Attributes()); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
}
