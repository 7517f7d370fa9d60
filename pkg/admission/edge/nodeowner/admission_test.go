// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeowner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// clusters are the UIDs of the clusters of the hub.
type clusters map[string]types.UID

func (c clusters) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	uid, there := c[name]
	switch {
	case uid == "fails":
		return nil, errors.New("etcd is away")
	case !there:
		return nil, apierrors.NewNotFound(cluster.Resource("managedclusters"), name)
	}
	return &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}, nil
}

func ref(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "cluster.open-cluster-management.io/v1", Kind: kind, Name: name, UID: uid}
}

func node(owners ...metav1.OwnerReference) *edge.EdgeNode {
	return &edge.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "c1", OwnerReferences: owners}}
}

// write handles a request like the server, and returns the owners of the resulting object.
func write(t *testing.T, hub clusters, updated, old *edge.EdgeNode, subresource string) ([]metav1.OwnerReference, error) {
	t.Helper()
	p := New()
	if hub != nil {
		p.Clusters = hub
	}
	r := at.Request{Group: edge.GroupName, Resource: "edgenodes", Subresource: subresource, Object: updated}
	if old != nil {
		r.Old = old
	}
	if err := p.Admit(t.Context(), r.Attributes(), nil); err != nil {
		return nil, err
	}
	_, err := at.Validate(t, p, r.Attributes())
	return updated.OwnerReferences, err
}

func TestOwner(t *testing.T) {
	own, former := ref("ManagedCluster", "c1", "u1"), ref("ManagedCluster", "c1", "u0")
	controlled := own
	controlled.Controller = new(true)
	configMap := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "keeps-it", UID: "u7"}
	for name, c := range map[string]struct {
		updated, old *edge.EdgeNode
		want         []metav1.OwnerReference // nil means rejected
	}{
		"created without":                          {node(), nil, []metav1.OwnerReference{own}},
		"created with it":                          {node(own), nil, []metav1.OwnerReference{own}},
		"created with that of a former cluster":    {node(former), nil, nil},
		"created with another cluster":             {node(ref("ManagedCluster", "c2", "u2")), nil, nil},
		"created with a set":                       {node(ref("ManagedClusterSet", "c1", "u3")), nil, nil},
		"created with one that stays":              {node(configMap), nil, nil},
		"created with both":                        {node(own, configMap), nil, nil},
		"created with the flag of another":         {node(controlled), nil, []metav1.OwnerReference{own}},
		"changed":                                  {node(own), node(own), []metav1.OwnerReference{own}},
		"removed":                                  {node(), node(own), []metav1.OwnerReference{own}},
		"replaced":                                 {node(configMap), node(own), nil},
		"another is added":                         {node(own, configMap), node(own), nil},
		"replaced by that of a former cluster":     {node(former), node(own), nil},
		"that of a former cluster stays":           {node(), node(former), []metav1.OwnerReference{former}},
		"a node of a former cluster is taken over": {node(own), node(former), nil},
		"one that was stored without":              {node(), node(), []metav1.OwnerReference{own}},
	} {
		got, err := write(t, clusters{"c1": "u1", "c2": "u2"}, c.updated, c.old, "")
		if c.want == nil && !apierrors.IsForbidden(err) || c.want != nil && (err != nil || !equality.Semantic.DeepEqual(got, c.want)) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// TestOwner_SubresourceCannotChange verifies that a subresource cannot change the owner: the strategy copies only its own part, and otherwise the
// plugin would reject it.
func TestOwner_SubresourceCannotChange(t *testing.T) {
	own := ref("ManagedCluster", "c1", "u1")
	for _, updated := range []*edge.EdgeNode{node(), node(ref("ManagedCluster", "c1", "u9"))} {
		if _, err := write(t, clusters{"c1": "u1"}, updated, node(own), "status"); !apierrors.IsForbidden(err) {
			t.Errorf("%v: got %v", updated.OwnerReferences, err)
		}
	}
}

func TestOwner_WithoutCluster(t *testing.T) {
	for name, c := range map[string]struct {
		hub     clusters
		owners  []metav1.OwnerReference
		refused func(error) bool
	}{
		// This is left to nodeaccess, which reports it to users who may know it.
		"there is none":             {clusters{}, nil, func(err error) bool { return err == nil }},
		"there is none, and forged": {clusters{}, []metav1.OwnerReference{ref("ManagedCluster", "c1", "u1")}, apierrors.IsForbidden},
		"it cannot be read":         {clusters{"c1": "fails"}, nil, apierrors.IsInternalError},
		"the server starts":         {nil, nil, apierrors.IsServiceUnavailable},
	} {
		if got, err := write(t, c.hub, node(c.owners...), nil, ""); !c.refused(err) || err == nil && len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestOwner_WithoutName verifies that a node with a generated name, which is set after admission, gets no owner.
func TestOwner_WithoutName(t *testing.T) {
	n := node()
	n.Name, n.GenerateName = "", "c"
	if got, err := write(t, clusters{"": "fails"}, n, nil, ""); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestIgnoresOtherResources(t *testing.T) {
	d := &edge.DeploymentPolicy{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ref("ManagedCluster", "c1", "u9")}}}
	before := slices.Clone(d.OwnerReferences)
	r := at.Request{Group: edge.GroupName, Resource: "deploymentpolicies", Object: d}
	if err := New().Admit(t.Context(), r.Attributes(), nil); err != nil || !equality.Semantic.DeepEqual(d.OwnerReferences, before) {
		t.Errorf("%v, %v", err, d.OwnerReferences)
	}
	if _, err := at.Validate(t, New(), r.Attributes()); err != nil {
		t.Error(err)
	}
}
