// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package executeas

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-base/featuregate"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// executeAs returns the permission to execute works of a namespace as a service account.
func executeAs(namespace, name string) rbac.Permission {
	rule := at.Rule("execute-as", work.GroupName, "manifestworks", name)
	rule.Namespace = namespace
	return rule
}

var deployer = executeAs("c1", "system:serviceaccount:ops:deployer")

// workOf returns a work in the namespace of c1, with an executor written namespace/name, or without one.
func workOf(executor string) *work.ManifestWork {
	w := &work.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
	if namespace, name, ok := strings.Cut(executor, "/"); ok {
		w.Spec.Executor = &work.ManifestWorkExecutor{Subject: work.ManifestWorkExecutorSubject{
			Type:           work.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &work.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name},
		}}
	}
	return w
}

func validate(t *testing.T, a *at.Authorizer, object, old runtime.Object, change ...func(*at.Request)) error {
	t.Helper()
	p := New()
	p.SetAuthorizer(a)
	request := at.Request{Object: object, Old: old, Group: work.GroupName, Resource: "manifestworks"}
	for _, c := range change {
		c(&request)
	}
	_, err := at.Validate(t, p, request.Attributes())
	return err
}

func TestValidate_ExecuteAsPermission(t *testing.T) {
	for who, c := range map[string]struct {
		grants  []rbac.Permission
		allowed bool
	}{
		"nothing":                   {},
		"execute-as":                {[]rbac.Permission{deployer}, true},
		"as another":                {[]rbac.Permission{executeAs("c1", "system:serviceaccount:ops:admin")}, false},
		"as one of the name":        {[]rbac.Permission{executeAs("c1", "deployer"), executeAs("c1", "ops/deployer"), executeAs("c1", "")}, false},
		"of another namespace":      {[]rbac.Permission{executeAs("c1", "system:serviceaccount:c1:deployer")}, false},
		"in another cluster":        {[]rbac.Permission{executeAs("c2", deployer.Name)}, false},
		"on what is in none":        {[]rbac.Permission{executeAs("", deployer.Name)}, false},
		"to update the work":        {[]rbac.Permission{{Verb: "update", Group: work.GroupName, Resource: "manifestworks", Name: "web", Namespace: "c1"}}, false},
		"impersonate":               {[]rbac.Permission{{Verb: "impersonate", Resource: "serviceaccounts", Name: "deployer", Namespace: "ops"}}, false},
		"execute-as on the status":  {[]rbac.Permission{{Verb: "execute-as", Group: work.GroupName, Resource: "manifestworks", Subresource: "status", Name: deployer.Name, Namespace: "c1"}}, false},
		"execute-as of replicasets": {[]rbac.Permission{{Verb: "execute-as", Group: work.GroupName, Resource: "manifestworkreplicasets", Name: deployer.Name, Namespace: "c1"}}, false},
	} {
		for how, old := range map[string]runtime.Object{"create": nil, "a first one": workOf(""), "another one": workOf("ops/viewer")} {
			for _, change := range []func(*at.Request){
				func(*at.Request) {}, func(r *at.Request) { r.DryRun = true }, func(r *at.Request) { r.Version = "v1alpha1" },
			} {
				a := &at.Authorizer{Grants: c.grants}
				err := validate(t, a, workOf("ops/deployer"), old, change)
				const says = "user ann cannot manipulate the Manifestwork with executor ops/deployer in namespace c1"
				if c.allowed != (err == nil) || err != nil && (!apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) ||
					!strings.Contains(err.Error(), `resourceNames: ["system:serviceaccount:ops:deployer"], verbs: ["execute-as"]} in the namespace c1`)) {
					t.Errorf("%s, %s: %v", who, how, err)
				}
				if !slices.Equal(a.Asked, []rbac.Permission{deployer}) || len(a.Odd) > 0 {
					t.Errorf("%s, %s: asked %v, odd %v", who, how, a.Asked, a.Odd)
				}
			}
		}
	}
}

// TestValidate_WithoutExecutor verifies that with the feature gate, users need permission to execute as the agent to create a work without an
// executor, and to remove an executor.
func TestValidate_WithoutExecutor(t *testing.T) {
	asAgent := executeAs("c1", "system:serviceaccount::klusterlet-work-sa")
	changed := workOf("")
	changed.Spec.DeleteOption = &work.DeleteOption{PropagationPolicy: work.DeletePropagationPolicyTypeOrphan}
	create, update := []rbac.Permission{{Verb: "create", Group: work.GroupName, Resource: "manifestworks", Namespace: "c1"}},
		[]rbac.Permission{{Verb: "update", Group: work.GroupName, Resource: "manifestworks", Name: "web", Namespace: "c1"}}
	for name, c := range map[string]struct {
		old     runtime.Object
		grants  []rbac.Permission
		off     bool
		asks    bool
		allowed bool
	}{
		"create, may not":                     {nil, create, false, true, false},
		"create, as another":                  {nil, []rbac.Permission{deployer, executeAs("c1", "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa")}, false, true, false},
		"create, in another cluster":          {nil, []rbac.Permission{executeAs("c2", asAgent.Name)}, false, true, false},
		"create, may":                         {nil, []rbac.Permission{asAgent}, false, true, true},
		"create, gate off":                    {nil, nil, true, false, true},
		"the executor goes, may not":          {workOf("ops/deployer"), update, false, true, false},
		"the executor goes, may be that one":  {workOf("ops/deployer"), []rbac.Permission{deployer}, false, true, false},
		"the executor goes, may":              {workOf("ops/deployer"), []rbac.Permission{asAgent}, false, true, true},
		"the executor goes, gate off":         {workOf("ops/deployer"), nil, true, false, true},
		"had none before, and something else": {changed, nil, false, false, true},
	} {
		for how, change := range map[string]func(*at.Request){
			"": func(*at.Request) {}, ", dry run": func(r *at.Request) { r.DryRun = true }, ", subresource": func(r *at.Request) { r.Subresource = "status" },
		} {
			a := &at.Authorizer{Grants: c.grants}
			p := New()
			p.SetAuthorizer(a)
			gates := featuregate.NewFeatureGate()
			if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {Default: !c.off}}); err != nil {
				t.Fatal(err)
			}
			p.InspectFeatureGates(gates)
			request := at.Request{Object: workOf(""), Old: c.old, Group: work.GroupName, Resource: "manifestworks"}
			change(&request)
			_, err := at.Validate(t, p, request.Attributes())
			const says = "user ann cannot manipulate the Manifestwork with executor /klusterlet-work-sa in namespace c1: this needs the RBAC rule "
			if c.allowed != (err == nil) || err != nil && (!apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) ||
				!strings.HasSuffix(err.Error(), "or an executor that the user may execute as")) {
				t.Errorf("%s%s: %v", name, how, err)
			}
			if asked := slices.Contains(a.Asked, asAgent); asked != c.asks || len(a.Odd) > 0 {
				t.Errorf("%s%s: asked %v, odd %v", name, how, a.Asked, a.Odd)
			}
		}
	}
}

// TestValidate_ChecksAllSubresources verifies that a subresource that changes the spec does not bypass the check, whatever its name.
func TestValidate_ChecksAllSubresources(t *testing.T) {
	for _, subresource := range []string{"status", "anything"} {
		err := validate(t, &at.Authorizer{}, workOf("ops/deployer"), workOf(""), func(r *at.Request) { r.Subresource = subresource })
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", subresource, err)
		}
	}
}

func TestValidate_UnchangedExecutorIsNotChecked(t *testing.T) {
	for name, c := range map[string]struct{ object, old *work.ManifestWork }{
		"no executor":           {workOf(""), nil},
		"none, again":           {workOf(""), workOf("")},
		"the same":              {workOf("ops/deployer"), workOf("ops/deployer")},
		"an executor that goes": {workOf(""), workOf("ops/deployer")},
	} {
		a := &at.Authorizer{Err: errors.New("not to be asked")}
		var old runtime.Object
		if c.old != nil {
			old = c.old
			c.object.Spec.ManifestConfigs = []work.ManifestConfigOption{{}}
		}
		if err := validate(t, a, c.object, old); err != nil || len(a.Asked) > 0 {
			t.Errorf("%s: %v, asked %v", name, err, a.Asked)
		}
	}
	// It ignores other kinds.
	set := &work.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: work.ManifestWorkReplicaSetSpec{ManifestWorkTemplate: workOf("a/b").Spec}}
	if err := validate(t, &at.Authorizer{}, set, nil, func(r *at.Request) { r.Resource = "manifestworkreplicasets" }); err != nil {
		t.Error(err)
	}
}

func TestValidate_RejectsInvalidExecutor(t *testing.T) {
	for name, executor := range map[string]*work.ManifestWorkExecutor{
		"nothing":    {},
		"no account": {Subject: work.ManifestWorkExecutorSubject{Type: work.ExecutorSubjectTypeServiceAccount}},
		"a user": {Subject: work.ManifestWorkExecutorSubject{Type: "User",
			ServiceAccount: &work.ManifestWorkSubjectServiceAccount{Namespace: "ops", Name: "deployer"}}},
	} {
		w := workOf("")
		w.Spec.Executor = executor
		if err := validate(t, &at.Authorizer{Grants: []rbac.Permission{deployer}}, w, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	for name, a := range map[string]*at.Authorizer{
		"cannot be asked": {Err: errors.New("connection refused")},
		"denies":          {Denials: []rbac.Permission{deployer}, Grants: nil},
	} {
		if err := validate(t, a, workOf("ops/deployer"), nil); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := New().ValidateInitialization(); err == nil {
		t.Error("it starts without an authorizer")
	}
}

// asked records the users whose permissions were checked.
type asked struct {
	at.Authorizer
	extra map[string][]string
}

func (a *asked) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	a.extra = attributes.GetUser().GetExtra()
	return a.Authorizer.Authorize(ctx, attributes)
}

// TestValidate_SendsExtraOfUser: authorizers such as those of scoped tokens depend on it.
func TestValidate_SendsExtraOfUser(t *testing.T) {
	a, p := &asked{Authorizer: at.Authorizer{Grants: []rbac.Permission{deployer}}}, New()
	p.SetAuthorizer(a)
	request := at.Request{Object: workOf("ops/deployer"), Group: work.GroupName, Resource: "manifestworks"}
	attributes := request.Attributes()
	if _, err := at.Validate(t, p, attributes); err != nil || len(a.extra["example.com/scope"]) != 1 {
		t.Errorf("%v, asked with %v", err, a.extra)
	}
}
