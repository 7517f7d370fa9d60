// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusteraccept

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func right(group, subresource, name string) rbac.Permission {
	return rbac.Permission{Verb: "update", Group: group, Resource: "managedclusters", Subresource: subresource, Name: name}
}

var (
	accept         = right("cluster.open-cluster-management.io", "accept", "c1")
	registerAccept = right("register.open-cluster-management.io", "accept", "c1")
	leave          = right("cluster.open-cluster-management.io", "leave", "c1")
)

func pluginFor(a *at.Authorizer, hub ...runtime.Object) *Plugin {
	p := New()
	p.SetAuthorizer(a)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	p.SetExternalKubeInformerFactory(factory)
	for _, namespace := range hub {
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace); err != nil {
			panic(err)
		}
	}
	p.SetReadyFunc(func() bool { return true })
	return p
}

func clusterThat(accepted bool) *cluster.ManagedCluster {
	c := at.Cluster("c1")
	c.Spec.HubAcceptsClient = accepted
	return c
}

// requestsOf returns every request that changes a cluster from one state to the other. A create is a change from "not accepted".
func requestsOf(from, to bool) map[string]at.Request {
	requests := map[string]at.Request{}
	for _, subresource := range []string{"", "accept", "label", "status"} {
		for _, dryRun := range []bool{false, true} {
			requests[fmt.Sprintf("update %q dry run %t", subresource, dryRun)] = at.Request{
				Object: clusterThat(to), Old: clusterThat(from), Subresource: subresource, DryRun: dryRun,
			}
		}
	}
	if !from {
		// A server-side apply of an object that does not exist is sent as an update, and passed to admission as a create.
		requests["create"] = at.Request{Object: clusterThat(to)}
		requests["create dry run"] = at.Request{Object: clusterThat(to), DryRun: true}
	}
	return requests
}

func TestValidate_AcceptAndDenyPermissions(t *testing.T) {
	rights := map[string]struct {
		grants             []rbac.Permission
		mayAccept, mayDeny bool
	}{
		"nothing":                     {},
		"accept":                      {grants: []rbac.Permission{accept}, mayAccept: true, mayDeny: true},
		"accept in upstream's group":  {grants: []rbac.Permission{registerAccept}, mayAccept: true, mayDeny: true},
		"leave":                       {grants: []rbac.Permission{leave}, mayDeny: true},
		"leave in upstream's group":   {grants: []rbac.Permission{right(permission.RegisterGroup, "leave", "c1")}},
		"accept of another cluster":   {grants: []rbac.Permission{right(cluster.GroupName, "accept", "c2")}},
		"accept of no name":           {grants: []rbac.Permission{right(cluster.GroupName, "accept", ""), right(cluster.GroupName, "accept", "*")}},
		"leave of another cluster":    {grants: []rbac.Permission{right(cluster.GroupName, "leave", "c2")}},
		"update of the cluster":       {grants: []rbac.Permission{right(cluster.GroupName, "", "c1")}},
		"update of its status":        {grants: []rbac.Permission{right(cluster.GroupName, "status", "c1")}},
		"accept in a third group":     {grants: []rbac.Permission{right("", "accept", "c1"), right("view.clusterhub.dev", "accept", "c1")}},
		"another verb on accept":      {grants: []rbac.Permission{at.Rule("create", cluster.GroupName, "managedclusters/accept", "c1")}},
		"every label of the clusters": {grants: at.Labels("*")},
	}
	for who, r := range rights {
		for name, request := range requestsOf(false, true) {
			t.Run(who+"/accept by "+name, func(t *testing.T) { try(t, r.grants, request, r.mayAccept) })
		}
		for name, request := range requestsOf(true, false) {
			t.Run(who+"/deny by "+name, func(t *testing.T) { try(t, r.grants, request, r.mayDeny) })
		}
	}
}

func try(t *testing.T, grants []rbac.Permission, request at.Request, allowed bool) {
	t.Helper()
	a := &at.Authorizer{Grants: grants}
	_, err := at.Validate(t, pluginFor(a), request.Attributes())
	if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want allowed: %t", err, allowed)
	}
	if len(a.Odd) > 0 {
		t.Errorf("asked what no rule can grant: %+v", a.Odd)
	}
}

func TestValidate_LeavePermissionDoesNotAllowAccept(t *testing.T) {
	plugin := pluginFor(&at.Authorizer{Grants: []rbac.Permission{leave}})
	for name, request := range requestsOf(true, false) {
		if _, err := at.Validate(t, plugin, request.Attributes()); err != nil {
			t.Errorf("leave by %s: %v", name, err)
		}
	}
	for name, request := range requestsOf(false, true) {
		if _, err := at.Validate(t, plugin, request.Attributes()); !apierrors.IsForbidden(err) {
			t.Errorf("come back by %s: got %v, want a 403", name, err)
		}
	}
}

func TestValidate_AcceptDoesNotRequireLeave(t *testing.T) {
	a := &at.Authorizer{}
	_, _ = at.Validate(t, pluginFor(a), at.Request{Object: clusterThat(true), Old: clusterThat(false)}.Attributes())
	if want := []rbac.Permission{accept, registerAccept}; !slices.Equal(a.Asked, want) {
		t.Errorf("asked for %v, want %v", a.Asked, want)
	}
}

func TestValidate_UnchangedFieldsNeedNoPermission(t *testing.T) {
	for _, state := range []bool{false, true} {
		for name, request := range requestsOf(state, state) {
			t.Run(fmt.Sprintf("%t/%s", state, name), func(t *testing.T) {
				a := &at.Authorizer{Err: errors.New("must not be asked")}
				if _, err := at.Validate(t, pluginFor(a), request.Attributes()); err != nil || len(a.Asked) > 0 {
					t.Fatalf("got %v after asking for %v", err, a.Asked)
				}
			})
		}
	}
}

func TestValidate_PermissionsNamedInErrorSuffice(t *testing.T) {
	for _, to := range []bool{true, false} {
		for name, request := range requestsOf(!to, to) {
			t.Run(fmt.Sprintf("%t/%s", to, name), func(t *testing.T) {
				_, err := at.Validate(t, pluginFor(&at.Authorizer{}), request.Attributes())
				rules := at.MissingRules(t, err)
				if !slices.Equal(rules, []rbac.Permission{accept}) {
					t.Fatalf("%v\nasks for %v", err, rules)
				}
				verb := map[bool]string{true: "accept", false: "deny"}[to]
				if !strings.Contains(err.Error(), `user "ann" cannot `+verb+" the cluster c1") {
					t.Errorf("%v\ndoes not say who cannot do what", err)
				}
				try(t, rules, request, true)
			})
		}
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	for _, to := range []bool{true, false} {
		for name, request := range requestsOf(!to, to) {
			_, err := at.Validate(t, pluginFor(&at.Authorizer{Err: errors.New("connection refused")}), request.Attributes())
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("%t/%s: got %v, want a 403 that says why", to, name, err)
			}
		}
	}
}

func TestValidate_DenialInOneGroupAppliesToBoth(t *testing.T) {
	a := &at.Authorizer{Denials: []rbac.Permission{accept}, Grants: []rbac.Permission{registerAccept}}
	r := at.Request{Object: clusterThat(true), Old: clusterThat(false)}
	if _, err := at.Validate(t, pluginFor(a), r.Attributes()); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want a 403", err)
	}
	a = &at.Authorizer{Denials: []rbac.Permission{accept}, Grants: []rbac.Permission{leave}}
	r = at.Request{Object: clusterThat(false), Old: clusterThat(true)}
	if _, err := at.Validate(t, pluginFor(a), r.Attributes()); err != nil {
		t.Errorf("leaving: %v", err)
	}
}

func TestValidate_RejectsAcceptDuringNamespaceDeletion(t *testing.T) {
	namespace := func(phase corev1.NamespacePhase) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Status: corev1.NamespaceStatus{Phase: phase}}
	}
	marked := namespace(corev1.NamespaceActive)
	marked.DeletionTimestamp, marked.Finalizers = &metav1.Time{}, []string{"x/y"}
	other := namespace(corev1.NamespaceTerminating)
	other.Name = "c2"
	for name, c := range map[string]struct {
		hub     runtime.Object
		refused bool
	}{
		"there":              {hub: namespace(corev1.NamespaceActive)},
		"another's is going": {hub: other},
		"terminating":        {hub: namespace(corev1.NamespaceTerminating), refused: true},
		"marked for removal": {hub: marked, refused: true},
	} {
		for how, request := range requestsOf(false, true) {
			_, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: []rbac.Permission{accept}}, c.hub), request.Attributes())
			if (err != nil) != c.refused || c.refused && !apierrors.IsForbidden(err) {
				t.Errorf("%s, %s: got %v, want refused: %t", name, how, err, c.refused)
			}
			if c.refused && !strings.Contains(err.Error(), `cluster namespace "c1" is terminating`) {
				t.Errorf("%s, %s: %v does not say why", name, how, err)
			}
		}
		for how, request := range requestsOf(true, false) {
			if _, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: []rbac.Permission{leave}}, c.hub),
				request.Attributes()); err != nil {
				t.Errorf("%s, deny by %s: %v", name, how, err)
			}
		}
	}
}

func TestValidate_RejectsAcceptBeforeNamespaceSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the plugin waits for ten seconds
		p := pluginFor(&at.Authorizer{Grants: []rbac.Permission{accept}})
		p.SetReadyFunc(func() bool { return false })
		_, err := at.Validate(t, p, at.Request{Object: clusterThat(true)}.Attributes())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "are not known yet") {
			t.Errorf("got %v, want a 403 that says why", err)
		}
	})
}

func TestValidate_ChecksPermissionBeforeNamespace(t *testing.T) {
	p := pluginFor(&at.Authorizer{})
	p.SetReadyFunc(func() bool { t.Error("waits for the namespaces"); return true })
	if _, err := at.Validate(t, p, at.Request{Object: clusterThat(true)}.Attributes()); err == nil {
		t.Error("is allowed")
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	r := at.Request{Object: &cluster.ManagedClusterSet{}, Resource: "managedclustersets", Version: "v1beta1"}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_RejectsOtherTypes(t *testing.T) {
	wrong := &cluster.ManagedClusterSet{}
	for name, r := range map[string]at.Request{
		"the object":     {Object: wrong, Old: clusterThat(false)},
		"the old object": {Object: clusterThat(true), Old: wrong},
	} {
		if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); !apierrors.IsInternalError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestValidateInitialization_RequiresAuthorizerAndNamespaces(t *testing.T) {
	for name, p := range map[string]*Plugin{
		"nothing":       New(),
		"no namespaces": {Guard: permission.Guard{Authorizer: &at.Authorizer{}}},
		"no authorizer": {namespaces: pluginFor(nil).namespaces},
	} {
		if p.ValidateInitialization() == nil {
			t.Errorf("%s: is ready", name)
		}
	}
	if err := pluginFor(&at.Authorizer{}).ValidateInitialization(); err != nil {
		t.Error(err)
	}
}
