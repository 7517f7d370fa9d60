// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetbinding

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func bind(set string) rbac.Permission {
	return at.Rule("create", "cluster.open-cluster-management.io", "managedclustersets/bind", set)
}

func pluginFor(a *at.Authorizer) *Plugin {
	p := New()
	p.SetAuthorizer(a)
	return p
}

func binding(set string) *cluster.ManagedClusterSetBinding {
	return &cluster.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: set},
		Spec:       cluster.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// requests returns the ways to create a binding. A server-side apply of an object that does not exist is passed as a create.
func requests(set string) map[string]at.Request {
	result := map[string]at.Request{}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		r := at.Request{Object: binding(set), Resource: "managedclustersetbindings", Version: version}
		result[version] = r
		r.DryRun = true
		result[version+" dry run"] = r
	}
	return result
}

func TestValidate_Permissions(t *testing.T) {
	for who, c := range map[string]struct {
		grants  []rbac.Permission
		allowed bool
	}{
		"nothing":                {},
		"bind":                   {grants: []rbac.Permission{bind("dev")}, allowed: true},
		"bind of another set":    {grants: []rbac.Permission{bind("qa"), bind("*"), bind("ns"), bind("")}},
		"join":                   {grants: []rbac.Permission{at.Join("dev")}},
		"get":                    {grants: []rbac.Permission{at.Rule("get", cluster.GroupName, "managedclustersets", "dev")}},
		"update instead":         {grants: []rbac.Permission{at.Rule("update", cluster.GroupName, "managedclustersets/bind", "dev")}},
		"bind in another group":  {grants: []rbac.Permission{at.Rule("create", permission.RegisterGroup, "managedclustersets/bind", "dev")}},
		"creation of the object": {grants: []rbac.Permission{at.Rule("create", cluster.GroupName, "managedclustersetbindings", "dev")}},
	} {
		for how, request := range requests("dev") {
			t.Run(who+"/"+how, func(t *testing.T) {
				a := &at.Authorizer{Grants: c.grants}
				_, err := at.Validate(t, pluginFor(a), request.Attributes())
				if c.allowed && err != nil || !c.allowed && !apierrors.IsForbidden(err) {
					t.Fatalf("got %v, want allowed: %t", err, c.allowed)
				}
				if want := []rbac.Permission{bind("dev")}; !slices.Equal(a.Asked, want) || len(a.Odd) > 0 {
					t.Errorf("asked for %v, want %v; odd: %v", a.Asked, want, a.Odd)
				}
			})
		}
	}
}

func TestValidate_ChecksSetNotBindingName(t *testing.T) {
	b := binding("dev")
	b.Name = "mine"
	r := at.Request{Object: b, Resource: "managedclustersetbindings", Version: "v1beta2"}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: []rbac.Permission{bind("mine")}}),
		r.Attributes()); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a 403", err)
	}
}

func TestValidate_ErrorNamesMissingRule(t *testing.T) {
	for how, request := range requests("dev") {
		_, err := at.Validate(t, pluginFor(&at.Authorizer{}), request.Attributes())
		if rules := at.MissingRules(t, err); !slices.Equal(rules, []rbac.Permission{bind("dev")}) {
			t.Errorf("%s: %v asks for %v", how, err, rules)
		}
		if !strings.Contains(err.Error(), `user "ann" cannot bind the cluster set dev`) {
			t.Errorf("%s: %v does not say who cannot do what", how, err)
		}
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	for how, request := range requests("dev") {
		_, err := at.Validate(t, pluginFor(&at.Authorizer{Err: errors.New("connection refused")}), request.Attributes())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: got %v, want a 403 that says why", how, err)
		}
	}
}

func TestValidate_ExistingBindingCanBeUpdated(t *testing.T) {
	r := at.Request{Object: binding("dev"), Old: binding("dev"), Resource: "managedclustersetbindings", Version: "v1beta2"}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}),
		at.Request{Object: at.Cluster("c1")}.Attributes()); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_RejectsOtherTypes(t *testing.T) {
	r := at.Request{Object: at.Cluster("c1"), Resource: "managedclustersetbindings"}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); !apierrors.IsInternalError(err) {
		t.Fatalf("got %v", err)
	}
}

func TestValidateInitialization_RequiresAuthorizer(t *testing.T) {
	if New().ValidateInitialization() == nil {
		t.Error("a plugin that can ask nobody is ready")
	}
	if err := pluginFor(&at.Authorizer{}).ValidateInitialization(); err != nil {
		t.Error(err)
	}
}
