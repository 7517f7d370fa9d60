// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The shared roles have the rules that agents of one cluster have, without its name.
func TestRoles_OfAllAgentsMatchSingleAgent(t *testing.T) {
	want := map[string][]rbacv1.PolicyRule{
		agentroles.ClusterRole: agentroles.Rules(""), agentroles.ListCSRsClusterRole: agentroles.ListCSRsRules(),
		agentroles.WorksClusterRole: agentroles.WorksRules(),
	}
	for _, o := range built(t, "base") {
		if role, ok := o.(*rbacv1.ClusterRole); ok && want[role.Name] != nil {
			if diff := cmp.Diff(want[role.Name], role.Rules); diff != "" {
				t.Errorf("%s (-want +got):\n%s", role.Name, diff)
			}
			delete(want, role.Name)
		}
		// It is for the controller to decide whether they are safe.
		if binding, ok := o.(*rbacv1.ClusterRoleBinding); ok && strings.HasPrefix(binding.RoleRef.Name, agentroles.ClusterRole) {
			t.Errorf("%s is bound by the manifests", binding.RoleRef.Name)
		}
	}
	if len(want) != 0 {
		t.Errorf("there is no %v", want)
	}
}

// accepted answers as the front does for agents of accepted clusters, who have a role in the namespaces of their clusters.
func accepted(clusters ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "update" && a.GetResource() == "leases" && a.GetAPIGroup() == "coordination.k8s.io" && a.GetName() == registration.LeaseName &&
			slices.Contains(clusters, a.GetNamespace()) && slices.Contains(a.GetUser().GetGroups(), "system:authenticated") {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

// agentWrite is a write of a user. Without an object it is a deletion.
type agentWrite struct {
	resource, subresource string
	before, after         runtime.Object
}

// held returns the message of a policy that rejects a write, or "" if it allows the write.
func held(t *testing.T, policy validating.Validator, who user.Info, w agentWrite) string {
	t.Helper()
	kind, group := clusterv1.SchemeGroupVersion.WithKind("ManagedCluster"), clusterv1.SchemeGroupVersion
	if w.resource == "certificatesigningrequests" {
		kind, group = certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), certificatesv1.SchemeGroupVersion
	}
	if w.resource == "manifestworks" {
		kind, group = workv1.SchemeGroupVersion.WithKind("ManifestWork"), workv1.SchemeGroupVersion
	}
	if w.resource == "clusterroles" {
		kind, group = rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion
	}
	operation, of := admission.Update, w.after
	switch {
	case w.before == nil:
		operation = admission.Create
	case w.after == nil:
		operation, of = admission.Delete, w.before
	}
	resource := schema.GroupVersionResource{Group: group.Group, Version: group.Version, Resource: w.resource}
	attributes := admission.NewAttributesRecord(w.after, w.before, kind, of.(metav1.Object).GetNamespace(), of.(metav1.Object).GetName(), resource, w.subresource, operation, nil, false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	if w.after != nil {
		versioned.VersionedObject = admission.NewLazyObject(w.after)
	}
	if w.before != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(w.before)
	}
	var said []string
	for _, d := range policy.Validate(t.Context(), resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, accepted("c1", "c2", "other")).Decisions {
		if d.Evaluation == validating.EvalError {
			t.Errorf("%s", d.Message)
		}
		if d.Action == validating.ActionDeny {
			said = append(said, d.Message)
		}
	}
	return strings.Join(said, "; ")
}

// agentPolicies are those about agents, by the resource.
func agentPolicies(t *testing.T) map[string]validating.Validator {
	t.Helper()
	all := map[string]validating.Validator{}
	for _, o := range built(t, "base") {
		if policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok && strings.HasPrefix(policy.Name, "agents-") {
			all[policy.Spec.MatchConstraints.ResourceRules[0].Resources[0]] = compiled(t, policy)
		}
	}
	if len(all) != 4 {
		t.Fatalf("there are policies of agents about %d resources, want 4", len(all))
	}
	return all
}

func agentWrites() map[string]agentWrite {
	cluster := func(name string, accepted bool) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted}}
	}
	request := func(of string) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "c1-x"}}
		if of != "" {
			r.Labels = map[string]string{registration.ClusterNameLabel: of}
		}
		return r
	}
	work := func(namespace string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	const clusters, requests, works = "managedclusters", "certificatesigningrequests", "manifestworks"
	return map[string]agentWrite{
		"update":           {clusters, "", cluster("c1", true), cluster("c1", true)},
		"status":           {clusters, "status", cluster("c1", true), cluster("c1", true)},
		"leave":            {clusters, "", cluster("c1", true), cluster("c1", false)},
		"accept itself":    {clusters, "", cluster("c1", false), cluster("c1", true)},
		"denied, status":   {clusters, "status", cluster("c1", false), cluster("c1", false)},
		"make":             {clusters, "", nil, cluster("c1", true)},
		"delete":           {clusters, "", cluster("c1", true), nil},
		"other":            {clusters, "", cluster("c2", true), cluster("c2", true)},
		"other's status":   {clusters, "status", cluster("c2", true), cluster("c2", true)},
		"delete other":     {clusters, "", cluster("c2", true), nil},
		"ask":              {requests, "", nil, request("c1")},
		"ask for other":    {requests, "", nil, request("c2")},
		"ask for none":     {requests, "", nil, request("")},
		"change":           {requests, "", request("c1"), request("c1")},
		"approve":          {requests, "approval", request("c1"), request("c1")},
		"delete a request": {requests, "", request("c1"), nil},
		"let go":           {works, "", work("c1"), work("c1")},
		"report":           {works, "status", work("c1"), work("c1")},
		"make a work":      {works, "", nil, work("c1")},
		"delete a work":    {works, "", work("c1"), nil},
		"other's work":     {works, "", work("c2"), work("c2")},
		"other's report":   {works, "status", work("c2"), work("c2")},
	}
}

// Whatever RBAC says, agents write what is of their own cluster, and those of a denied one nothing.
func TestPolicies_RestrictAgentsToOwnCluster(t *testing.T) {
	own, none := []string{"update", "status", "leave", "ask", "let go", "report"}, []string(nil)
	group, aws := registration.ClusterGroup, registration.AWSGroup
	const all, allAWS = registration.ManagedClustersGroup, registration.AWSManagedClustersGroup
	named := func(name string, groups ...string) *user.DefaultInfo {
		return &user.DefaultInfo{Name: name, Groups: append(groups, "system:authenticated")}
	}
	policies, writes := agentPolicies(t), agentWrites()
	everything := make([]string, 0, len(writes))
	for what := range writes {
		everything = append(everything, what)
	}
	for who, test := range map[string]struct {
		user user.Info
		may  []string
	}{
		"agent":               {named(registration.ClusterUser("c1", "a"), group("c1"), all), own},
		"of any name":         {named("a", group("c1"), all), own},
		"by AWS":              {named(aws("c1"), aws("c1"), allAWS), own},
		"by AWS, by a token":  {named("arn:aws:sts::1:assumed-role/a/b", aws("c1"), allAWS), own},
		"twice the same":      {named("a", group("c1"), all, group("c1")), own},
		"of another":          {named("a", group("other"), all), none},
		"of a denied one":     {named("a", group("c3"), all), none},
		"of all":              {named("a", all), none},
		"of all by AWS":       {named("a", allAWS), none},
		"of two":              {named("a", group("c1"), group("c2"), all), none},
		"of two ways":         {named("a", group("c1"), aws("c1"), all), none},
		"of both groups":      {named("a", group("c1"), all, allAWS), none},
		"of the other prefix": {named("a", group("c1"), allAWS), none},
		"of another name":     {named(registration.ClusterUser("c2", "a"), group("c1"), all), none},
		"of a longer name":    {named(registration.ClusterUser("c11", "a"), group("c1"), all), none},
		"of a name by AWS":    {named(aws("c2"), group("c1"), all), none},
		"by its name alone":   {named(registration.ClusterUser("c1", "a"), all), none},
		"of a reserved name":  {named("a", group("work"), all), none},
		"of no name":          {named("a", group(""), all), none},
		"of a pattern":        {named("a", group(".*"), all), none},
		"an admin, too":       {named("admin", "system:masters", all), none},
		// The policy does not affect other users, who are limited by RBAC only.
		"an admin":              {named("admin", "system:masters"), everything},
		"nobody":                {&user.DefaultInfo{Name: "a"}, everything},
		"of a bootstrap token":  {named("system:bootstrap:abcdef", "system:bootstrappers:managedcluster"), everything},
		"of an addon":           {named("a", "system:open-cluster-management:cluster:c1:addon:a", "system:open-cluster-management:addon:a"), everything},
		"of one cluster's team": {named("a", aws("c1")), everything},
	} {
		for what, write := range writes {
			said := held(t, policies[write.resource], test.user, write)
			if (said == "") != slices.Contains(test.may, what) {
				t.Errorf("%s: %s: refused by %q", who, what, said)
			}
		}
	}
}

// An agent whose cluster was denied while its certificate lives has lost its rights in the namespace, and asks for no other.
func TestPolicies_DeniedAgentGetsNoCertificate(t *testing.T) {
	policy := agentPolicies(t)["certificatesigningrequests"]
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{registration.ClusterNameLabel: "c3"}}}
	who := &user.DefaultInfo{Name: registration.ClusterUser("c3", "a"), Groups: []string{registration.ClusterGroup("c3"), registration.ManagedClustersGroup, "system:authenticated"}}
	if said := held(t, policy, who, agentWrite{"certificatesigningrequests", "", nil, request}); said != "an agent may only request certificates while its cluster is accepted" {
		t.Errorf("it is refused by %q", said)
	}
}
