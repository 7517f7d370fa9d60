// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasetauthor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// bindings are the bindings of the namespace ns.
type bindings struct {
	rest.Lister
	*testing.T
	sets []string
	err  error
}

func (b bindings) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if request.NamespaceValue(ctx) != "ns" || o.ResourceVersion != "0" {
		b.Errorf("asked for %q, %q", request.NamespaceValue(ctx), o.ResourceVersion)
	}
	list := &cluster.ManagedClusterSetBindingList{}
	for _, name := range b.sets {
		list.Items = append(list.Items, cluster.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: cluster.ManagedClusterSetBindingSpec{ClusterSet: name}})
	}
	return list, b.err
}

func replicaSet(text string) *work.ManifestWorkReplicaSet {
	s := &work.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	s.Spec.ManifestWorkTemplate.Workload.Manifests = []work.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}}
	return s
}

func TestAuthor_ErrorNamesMissingRole(t *testing.T) {
	everywhere := at.Rule("create", work.GroupName, "manifestworks", "")
	inSet := at.Rule("create", cluster.GroupName, "managedclustersets/manifestworks", "s2")
	inNamespace := everywhere
	inNamespace.Namespace = "ns"
	const want = "(s1, s2), so none are created where the user may not create manifestworks in the cluster's namespace: this needs the role deployer of the set " +
		"(kubectl hub grant s1 --role deployer)"
	labelled := replicaSet("a")
	labelled.Labels = map[string]string{"a": "b"}
	both := []string{"s2", "s1"}
	many := make([]string, maxAsked+1)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	for name, test := range map[string]struct {
		sets     []string
		grants   []rbac.Permission
		failure  error
		list     error
		old      *work.ManifestWorkReplicaSet
		resource string
		sub      string
		want     bool
	}{
		"no right":                   {sets: both, want: true},
		"no right, another spec":     {sets: both, old: replicaSet("b"), want: true},
		"another right":              {sets: both, grants: []rbac.Permission{inNamespace, at.Rule("get", cluster.GroupName, "managedclustersets", "s2")}, want: true},
		"everywhere":                 {sets: both, grants: []rbac.Permission{everywhere}},
		"in one of the sets":         {sets: both, grants: []rbac.Permission{inSet}},
		"no set is bound":            {},
		"the spec is as it was":      {sets: both, old: labelled},
		"the status":                 {sets: both, old: replicaSet("b"), sub: "status"},
		"more sets than are asked":   {sets: many},
		"nobody can be asked":        {sets: both, failure: errors.New("connection refused")},
		"the bindings are not there": {sets: both, list: errors.New("not yet")},
	} {
		t.Run(name, func(t *testing.T) {
			p := New()
			p.SetAuthorizer(&at.Authorizer{Grants: test.grants, Err: test.failure})
			p.Bindings = bindings{T: t, sets: test.sets, err: test.list}
			r := at.Request{Object: replicaSet("a"), Group: work.GroupName, Resource: "manifestworkreplicasets", Version: "v1alpha1", Subresource: test.sub}
			if test.old != nil {
				r.Old = test.old
			}
			told, err := at.Validate(t, p, r.Attributes())
			if err != nil || (len(told) == 1) != test.want || len(told) > 1 || test.want && !strings.HasSuffix(told[0], want) {
				t.Errorf("it says %q, %v", told, err)
			}
		})
	}
}
