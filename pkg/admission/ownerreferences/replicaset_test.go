// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ownerreferences_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func labelled(labels map[string]string) runtime.Object {
	return &work.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: labels}}
}

// TestAdmission_WorkOfReplicaSetNeedsDeletePermission: the controller of a replica set prunes works that the set does not want.
func TestAdmission_WorkOfReplicaSetNeedsDeletePermission(t *testing.T) {
	k := kind{group: work.GroupName, resource: "manifestworks", namespace: "ns"}
	of := func(set, hash, placement string) map[string]string {
		return map[string]string{work.ReplicaSetLabel: set, work.ReplicaSetHashLabel: hash, work.PlacementLabel: placement, "a": "b"}
	}
	for name, c := range map[string]struct {
		before, after map[string]string
		asks          bool
	}{
		"by its name":           {nil, map[string]string{work.ReplicaSetLabel: "ns.web", work.PlacementLabel: "p"}, true},
		"by its hash":           {nil, map[string]string{work.ReplicaSetHashLabel: "0a", work.PlacementLabel: "p"}, true},
		"the last of them":      {map[string]string{work.ReplicaSetLabel: "ns.web"}, map[string]string{work.ReplicaSetLabel: "ns.web", work.PlacementLabel: "p"}, true},
		"of another one":        {of("ns.web", "0a", "p"), of("ns.db", "0a", "p"), true},
		"of another hash":       {of("ns.web", "0a", "p"), of("ns.web", "0b", "p"), true},
		"of another placement":  {of("ns.web", "0a", "p"), of("ns.web", "0a", "q"), true},
		"without a placement":   {nil, map[string]string{work.ReplicaSetLabel: "ns.web"}, false},
		"not any more":          {of("ns.web", "0a", "p"), map[string]string{"a": "b"}, false},
		"as it was":             {of("ns.web", "0a", "p"), of("ns.web", "0a", "p"), false},
		"another label":         {map[string]string{"a": "b"}, map[string]string{"a": "c"}, false},
		"a placement of no set": {nil, map[string]string{work.PlacementLabel: "p"}, false},
	} {
		for _, subresource := range []string{"", "status", "unknown"} {
			asked := k.attributes(labelled(c.after), labelled(c.before), subresource)
			if _, err := at.Validate(t, plugin(&at.Authorizer{}), asked); c.asks != apierrors.IsForbidden(err) || !c.asks && err != nil {
				t.Errorf("%s, %q: without the right: %v", name, subresource, err)
			}
			if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{k.delete()}}), asked); err != nil {
				t.Errorf("%s, %q: with the right: %v", name, subresource, err)
			}
		}
	}
	// A new work may have any labels.
	if _, err := at.Validate(t, plugin(&at.Authorizer{}), k.attributes(labelled(of("ns.web", "0a", "p")), nil, "")); err != nil {
		t.Errorf("a new one: %v", err)
	}
	// Labels of a replica set itself have no such meaning.
	set := func(labels map[string]string) runtime.Object {
		return &work.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: labels}}
	}
	k.resource = "manifestworkreplicasets"
	if _, err := at.Validate(t, plugin(&at.Authorizer{}), k.attributes(set(of("ns.web", "0a", "p")), set(nil), "")); err != nil {
		t.Errorf("another kind: %v", err)
	}
}

// TestAdmission_WorkOfEdgePlacementNeedsDeletePermission: the controller of edge placements deletes works of deleted placements.
func TestAdmission_WorkOfEdgePlacementNeedsDeletePermission(t *testing.T) {
	k := kind{group: work.GroupName, resource: "manifestworks", namespace: "ns"}
	of := func(hash, placement string) runtime.Object {
		return &work.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns",
			Labels: map[string]string{edge.PlacementHashLabel: hash}, Annotations: map[string]string{edge.PlacementAnnotation: placement}}}
	}
	for name, c := range map[string]struct {
		before, after runtime.Object
		asks          bool
	}{
		"of none before":        {labelled(nil), of("0a", "ns/p"), true},
		"by its hash alone":     {of("", "ns/p"), of("0a", "ns/p"), true},
		"of another one":        {of("0a", "ns/p"), of("0a", "ns/q"), true},
		"not any more":          {of("0a", "ns/p"), labelled(nil), false},
		"as it was":             {of("0a", "ns/p"), of("0a", "ns/p"), false},
		"an annotation of none": {labelled(nil), of("", "ns/p"), false},
	} {
		asked := k.attributes(c.after, c.before, "")
		if _, err := at.Validate(t, plugin(&at.Authorizer{}), asked); c.asks != apierrors.IsForbidden(err) || !c.asks && err != nil {
			t.Errorf("%s: without the right: %v", name, err)
		}
		if _, err := at.Validate(t, plugin(&at.Authorizer{Grants: []rbac.Permission{k.delete()}}), asked); err != nil {
			t.Errorf("%s: with the right: %v", name, err)
		}
	}
}
