// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeaccess

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// hub has the clusters c1, which is accepted, w1, which is not, g1, which is being deleted, and e1, which cannot be read.
type hub struct{ err error }

func (hub) Get(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	c := at.Cluster(name)
	c.Spec.HubAcceptsClient = name != "w1"
	switch {
	case options.ResourceVersion != "":
		return nil, errors.New("a cache was asked")
	case name == "g1":
		c.DeletionTimestamp = new(metav1.Now())
	case name == "e1":
		return nil, errors.New("etcd is away")
	case name != "c1" && name != "w1":
		return nil, apierrors.NewNotFound(cluster.Resource("managedclusters"), name)
	}
	return c, nil
}

func (h hub) SetsOf(_ context.Context, who user.Info, c *cluster.ManagedCluster) ([]string, error) {
	if who.GetName() != at.User.Name || c.Name != "c1" {
		return nil, h.err
	}
	return []string{"dev", "shops"}, h.err
}

func pluginFor(a *at.Authorizer) *Plugin {
	p := New()
	p.SetAuthorizer(a)
	p.Clusters, p.Sets = hub{}, hub{}
	return p
}

func byName(verb, name string) rbac.Permission {
	return at.Rule(verb, cluster.GroupName, "managedclusters", name)
}

func bySet(verb, set string) rbac.Permission {
	return at.Rule(verb, cluster.GroupName, "managedclustersets/clusters", set)
}

func node(name string) *edge.EdgeNode {
	return &edge.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: edge.EdgeNodeSpec{NodeType: edge.NodeTypeCluster}}
}

// deletion returns the deletion of a node. The request for a collection has no name.
func deletion(name, requested string, who user.Info) admission.Attributes {
	kind, resource := edge.SchemeGroupVersion.WithKind("EdgeNode"), edge.Resource("edgenodes").WithVersion("v1alpha1")
	return admission.NewAttributesRecord(nil, node(name), kind, "", requested, resource, "", admission.Delete, &metav1.DeleteOptions{}, false, who)
}

// requests returns the ways to write a node. Applies and patches are passed to admission as one of the first two.
func requests(name string, who user.Info) map[string]admission.Attributes {
	if who == nil {
		who = at.User
	}
	changed := node(name)
	changed.Spec.Pattern = "shop/all"
	labelled := node(name)
	labelled.Labels = map[string]string{"a": "b"}
	of := at.Request{Group: edge.GroupName, Resource: "edgenodes", By: who}
	create, update, label, other, dry := of, of, of, of, of
	create.Object = changed
	update.Object, update.Old = changed, node(name)
	label.Object, label.Old = labelled, node(name)
	other.Object, other.Old, other.Subresource = changed, node(name), "scale"
	dry.Object, dry.Old, dry.DryRun = changed, node(name), true
	return map[string]admission.Attributes{
		"create": create.Attributes(), "update": update.Attributes(), "label": label.Attributes(), "another subresource": other.Attributes(),
		"dry run": dry.Attributes(), "delete": deletion(name, name, who), "deletecollection": deletion(name, "", who),
	}
}

func validate(t *testing.T, p *Plugin, a admission.Attributes) error {
	t.Helper()
	if !p.Handles(a.GetOperation()) {
		t.Fatalf("%s is not looked at", a.GetOperation())
	}
	return p.Validate(t.Context(), a, nil)
}

func TestValidate_Permissions(t *testing.T) {
	for who, c := range map[string]struct {
		grants  []rbac.Permission
		allowed bool
	}{
		"nothing":                            {},
		"update of the cluster":              {[]rbac.Permission{byName("update", "c1")}, true},
		"update of the clusters of a set":    {[]rbac.Permission{bySet("update", "shops")}, true},
		"update of another cluster":          {[]rbac.Permission{byName("update", "c2"), byName("update", ""), byName("update", "*")}, false},
		"update of another set":              {[]rbac.Permission{bySet("update", "qa"), bySet("update", ""), bySet("update", "c1")}, false},
		"patch, get and delete":              {[]rbac.Permission{byName("patch", "c1"), byName("get", "c1"), byName("delete", "c1"), bySet("patch", "dev"), bySet("get", "dev")}, false},
		"update of the set":                  {[]rbac.Permission{at.Rule("update", cluster.GroupName, "managedclustersets", "dev")}, false},
		"update of the status of it":         {[]rbac.Permission{at.Rule("update", cluster.GroupName, "managedclusters/status", "c1")}, false},
		"the verbs on edgenodes":             {[]rbac.Permission{at.Rule("update", edge.GroupName, "edgenodes", "c1"), at.Rule("delete", edge.GroupName, "edgenodes", "c1")}, false},
		"update of managedclusters of views": {[]rbac.Permission{at.Rule("update", "clusterview.open-cluster-management.io", "managedclusters", "c1")}, false},
	} {
		for how, request := range requests("c1", nil) {
			a := &at.Authorizer{Grants: c.grants}
			err := validate(t, pluginFor(a), request)
			if c.allowed && err != nil || !c.allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s, %s: got %v, want allowed: %t", who, how, err, c.allowed)
			}
			if len(a.Odd) > 0 {
				t.Errorf("%s, %s: odd questions %v", who, how, a.Odd)
			}
		}
	}
}

func TestValidate_ErrorNamesRules(t *testing.T) {
	for how, request := range requests("c1", nil) {
		a := &at.Authorizer{}
		err := validate(t, pluginFor(a), request)
		if rules := at.MissingRules(t, err); !slices.Equal(rules, []rbac.Permission{byName("update", "c1")}) || !strings.Contains(err.Error(), "managedclustersets/clusters") {
			t.Errorf("%s: %v", how, err)
		}
		if want := []rbac.Permission{byName("update", "c1"), bySet("update", "dev"), bySet("update", "shops")}; !slices.Equal(a.Asked, want) {
			t.Errorf("%s: asked for %v, want %v", how, a.Asked, want)
		}
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	for how, request := range requests("c1", nil) {
		if err := validate(t, pluginFor(&at.Authorizer{Err: errors.New("connection refused")}), request); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s without an authorizer: %v", how, err)
		}
		p := pluginFor(&at.Authorizer{Grants: []rbac.Permission{bySet("update", "dev")}})
		p.Sets = hub{errors.New("no sets")}
		if err := validate(t, p, request); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no sets") {
			t.Errorf("%s without the sets: %v", how, err)
		}
		p.Sets, p.Clusters = nil, nil
		if err := validate(t, p, request); err == nil {
			t.Errorf("%s: a starting server lets it pass", how)
		}
	}
	for how, request := range requests("e1", nil) {
		if err := validate(t, pluginFor(&at.Authorizer{}), request); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("%s of a cluster that cannot be read: %v", how, err)
		}
	}
}

// TestValidate_WithoutCluster verifies that only users with the permission by name learn that a cluster does not exist, and that this permission
// allows them to change and delete an existing node without a cluster.
func TestValidate_WithoutCluster(t *testing.T) {
	for how, request := range requests("x1", nil) {
		if err := validate(t, pluginFor(&at.Authorizer{}), request); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "no ManagedCluster") {
			t.Errorf("%s without a right: %v", how, err)
		}
		err := validate(t, pluginFor(&at.Authorizer{Grants: []rbac.Permission{byName("update", "x1")}}), request)
		if how == "create" && !apierrors.IsInvalid(err) || how != "create" && err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	for name, want := range map[string]string{"x1": "no ManagedCluster has this name", "g1": "is being deleted"} {
		request := requests(name, nil)["create"]
		err := validate(t, pluginFor(&at.Authorizer{Grants: []rbac.Permission{byName("update", name)}}), request)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func agent(name string) user.Info {
	return &user.DefaultInfo{Name: registration.ClusterUser(name, "a1"), Groups: []string{registration.ClusterGroup(name), registration.ManagedClustersGroup}}
}

func awsAgent(name string) user.Info {
	return &user.DefaultInfo{Name: "arn:aws:sts::1:assumed-role/r/s", Groups: []string{registration.AWSGroup(name), registration.AWSManagedClustersGroup}}
}

// allowing is an authorizer that allows everything, as agents are allowed to update their cluster.
type allowing struct{ *at.Authorizer }

func (allowing) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

func TestValidate_AgentPermissions(t *testing.T) {
	empty := func(change func(*edge.EdgeNode)) *edge.EdgeNode {
		n := node("c1")
		change(n)
		return n
	}
	for name, c := range map[string]struct {
		object  *edge.EdgeNode
		by      user.Info
		allowed bool
	}{
		"its own":                     {node("c1"), agent("c1"), true},
		"its own, by AWS":             {node("c1"), awsAgent("c1"), true},
		"without the default":         {empty(func(n *edge.EdgeNode) { n.Spec.NodeType = "" }), agent("c1"), true},
		"of a cluster that waits":     {node("w1"), agent("w1"), false},
		"that of another":             {node("c1"), agent("c2"), false},
		"that of another, by AWS":     {node("c1"), awsAgent("c2"), false},
		"of two clusters":             {node("c1"), &user.DefaultInfo{Name: registration.ClusterUser("c1", "a"), Groups: []string{registration.ClusterGroup("c1"), registration.ClusterGroup("c2"), registration.ManagedClustersGroup}}, false},
		"an addon's":                  {node("c1"), &user.DefaultInfo{Name: "system:open-cluster-management:cluster:c1:addon:x:agent:y", Groups: []string{"system:open-cluster-management:cluster:c1:addon:x"}}, false},
		"a device":                    {empty(func(n *edge.EdgeNode) { n.Spec.NodeType = edge.NodeTypeDevice }), agent("c1"), false},
		"with a pattern":              {empty(func(n *edge.EdgeNode) { n.Spec.Pattern = "a/b" }), agent("c1"), false},
		"with a property":             {empty(func(n *edge.EdgeNode) { n.Spec.Properties = []edge.Property{{Name: "a"}} }), agent("c1"), false},
		"with an overlay":             {empty(func(n *edge.EdgeNode) { n.Spec.Deployment = &edge.Policy{} }), agent("c1"), false},
		"with a label":                {empty(func(n *edge.EdgeNode) { n.Labels = map[string]string{"a": "b"} }), agent("c1"), false},
		"with a finalizer that stays": {empty(func(n *edge.EdgeNode) { n.Finalizers = []string{"a.b/c"} }), agent("c1"), false},
		"with an annotation":          {empty(func(n *edge.EdgeNode) { n.Annotations = map[string]string{"a": "b"} }), agent("c1"), false},
	} {
		p := pluginFor(&at.Authorizer{})
		err := validate(t, p, at.Request{Group: edge.GroupName, Resource: "edgenodes", Object: c.object, By: c.by}.Attributes())
		if c.allowed && err != nil || !c.allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want allowed: %t", name, err, c.allowed)
		}
	}
}

// TestValidate_AgentPermissionsOnClusterDoNotCount verifies that the permission of an agent to update its ManagedCluster does not count here.
func TestValidate_AgentPermissionsOnClusterDoNotCount(t *testing.T) {
	for _, who := range []user.Info{agent("c1"), awsAgent("c1")} {
		for how, request := range requests("c1", who) {
			p := pluginFor(&at.Authorizer{})
			p.Authorizer = allowing{p.Authorizer.(*at.Authorizer)}
			if err := validate(t, p, request); !apierrors.IsForbidden(err) {
				t.Errorf("%s by %s: %v", how, who.GetName(), err)
			}
		}
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	status := at.Request{Group: edge.GroupName, Resource: "edgenodes", Subresource: "status", Object: node("c1"), Old: node("c1")}
	for _, request := range []at.Request{status, {Object: at.Cluster("c1")}} {
		if err := validate(t, pluginFor(&at.Authorizer{}), request.Attributes()); err != nil {
			t.Error(err)
		}
	}
	if err := validate(t, pluginFor(&at.Authorizer{}), at.Request{Group: edge.GroupName, Resource: "edgenodes", Object: at.Cluster("c1")}.Attributes()); !apierrors.IsInternalError(err) {
		t.Errorf("what is no node: %v", err)
	}
}

func TestValidateInitialization_RequiresAuthorizer(t *testing.T) {
	if New().ValidateInitialization() == nil {
		t.Error("a plugin that can ask nothing is ready")
	}
}
