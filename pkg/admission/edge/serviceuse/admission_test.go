// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceuse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/edgetest"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/services"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// hub has services in the namespace tools: open is public, closed is not, and mixed is public in one version, and for one architecture of another.
func hub() *edgetest.Services {
	s := func(url, version, arch string, changes ...func(*edge.EdgeService)) *edge.EdgeService {
		return edgetest.Service("tools", url, version, arch, nil, changes...)
	}
	return &edgetest.Services{Stored: []*edge.EdgeService{
		s("open", "1.0.0", "amd64", edgetest.Public), s("closed", "1.0.0", "amd64"), s("closed", "2.0.0", "amd64"),
		s("mixed", "1.0.0", "amd64", edgetest.Public), s("mixed", "2.0.0", "amd64"), s("mixed", "3.0.0", "amd64", edgetest.Public), s("mixed", "3.0.0", "arm64"),
		edgetest.Service("other", "open", "9.0.0", "amd64", nil, edgetest.Public),
	}}
}

func pluginFor(a *at.Authorizer, hub *edgetest.Services) *Plugin {
	p := New()
	p.SetAuthorizer(a)
	p.Services = hub
	return p
}

func request(object, old runtime.Object) at.Request {
	r := at.Request{Group: edge.GroupName, Resource: "deploymentpolicies", Object: object, Old: old}
	if _, ok := object.(*edge.DeploymentPattern); ok {
		r.Resource = "deploymentpatterns"
	}
	return r
}

// requests returns the ways to name a service. Applies and patches are passed to admission as one of them.
func requests(org, url, arch string, versions ...string) map[string]at.Request {
	policy := edgetest.Policy("shop", org, url, versions...)
	policy.Spec.Service.Arch = arch
	pattern := edgetest.Pattern("shop", edge.PatternService{ServiceUrl: "own", ServiceVersions: edgetest.Versions("1")},
		edge.PatternService{ServiceUrl: url, ServiceOrgid: org, ServiceArch: arch, ServiceVersions: edgetest.Versions(versions...)})
	all := map[string]at.Request{
		"policy": request(policy, nil), "policy, update": request(policy, edgetest.Policy("shop", "", "own", "1")),
		"pattern": request(pattern, nil), "pattern, update": request(pattern, edgetest.Pattern("shop")),
	}
	dry := all["policy"]
	dry.DryRun = true
	other := all["policy, update"]
	other.Subresource = "status"
	all["policy, dry run"], all["policy, another subresource"] = dry, other
	return all
}

func TestValidate_Permissions(t *testing.T) {
	all := services.Get("tools", "")
	byName := func(url, version, arch string) rbac.Permission {
		return services.Get("tools", edge.ServiceName(url, version, arch))
	}
	for name, c := range map[string]struct {
		grants         []rbac.Permission
		org, url, arch string
		versions       []string
		allowed        bool
	}{
		"public":                                  {org: "tools", url: "open", versions: []string{"1.0.0"}, allowed: true},
		"private":                                 {org: "tools", url: "closed", versions: []string{"1.0.0"}},
		"private, of the own namespace":           {org: "shop", url: "closed", versions: []string{"1.0.0"}, allowed: true},
		"the own namespace, not named":            {url: "closed", versions: []string{"1.0.0"}, allowed: true},
		"not there, own namespace":                {url: "none", versions: []string{"1.0.0"}, allowed: true},
		"not there":                               {org: "tools", url: "none", versions: []string{"1.0.0"}},
		"a version of another namespace":          {org: "tools", url: "open", versions: []string{"9.0.0"}},
		"private, by its name":                    {[]rbac.Permission{byName("closed", "1.0.0", "amd64")}, "tools", "closed", "", []string{"1.0.0"}, true},
		"private, by the namespace":               {[]rbac.Permission{all}, "tools", "closed", "", []string{"1.0.0", "2.0.0"}, true},
		"private, one of two by its name":         {[]rbac.Permission{byName("closed", "1.0.0", "amd64")}, "tools", "closed", "", []string{"1.0.0", "2.0.0"}, false},
		"private, by a right on another":          {[]rbac.Permission{byName("open", "1.0.0", "amd64"), services.Get("shop", ""), services.Get("", "")}, "tools", "closed", "", []string{"1.0.0"}, false},
		"private, by other verbs":                 {[]rbac.Permission{{Verb: "list", Group: edge.GroupName, Resource: "edgeservices", Namespace: "tools"}, {Verb: "create", Group: edge.GroupName, Resource: "edgeservices", Namespace: "tools"}}, "tools", "closed", "", []string{"1.0.0"}, false},
		"a public version and a private one":      {org: "tools", url: "mixed", versions: []string{"1.0.0", "2.0.0"}},
		"public for one architecture":             {org: "tools", url: "mixed", versions: []string{"3.0.0"}, allowed: true},
		"public for the other architecture":       {org: "tools", url: "mixed", arch: "arm64", versions: []string{"3.0.0"}},
		"an architecture that it does not have":   {org: "tools", url: "open", arch: "s390x", versions: []string{"1.0.0"}},
		"a right on what is not there":            {[]rbac.Permission{all}, "tools", "none", "", []string{"1.0.0"}, false},
		"a namespace that ends as the other does": {org: "tool", url: "open", versions: []string{"1.0.0"}},
	} {
		for how, r := range requests(c.org, c.url, c.arch, c.versions...) {
			a := &at.Authorizer{Grants: c.grants}
			_, err := at.Validate(t, pluginFor(a, hub()), r.Attributes())
			if c.allowed && err != nil || !c.allowed && !apierrors.IsInvalid(err) {
				t.Errorf("%s, %s: got %v, want allowed: %t", name, how, err, c.allowed)
			}
			if len(a.Odd) > 0 {
				t.Errorf("%s, %s: odd questions %v", name, how, a.Odd)
			}
		}
	}
}

// TestValidate_PrivateAndMissingAreIndistinguishable verifies that a service that the user may not get is rejected with the same error as one that does not
// exist, so that users learn nothing about it.
func TestValidate_PrivateAndMissingAreIndistinguishable(t *testing.T) {
	for how := range requests("tools", "closed", "", "1.0.0") {
		_, private := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), requests("tools", "closed", "", "1.0.0")[how].Attributes())
		_, missing := at.Validate(t, pluginFor(&at.Authorizer{}, &edgetest.Services{}), requests("tools", "closed", "", "1.0.0")[how].Attributes())
		if private == nil || missing == nil || private.Error() != missing.Error() {
			t.Errorf("%s: private is %v\nmissing is %v", how, private, missing)
		}
	}
}

// TestValidate_ChecksOnlyChangedSpecs verifies that the rest of an object can be written whatever has happened to its services.
func TestValidate_ChecksOnlyChangedSpecs(t *testing.T) {
	policy, pattern := edgetest.Policy("shop", "tools", "closed", "1.0.0"), edgetest.Pattern("shop", edge.PatternService{ServiceOrgid: "tools", ServiceUrl: "closed", ServiceVersions: edgetest.Versions("1.0.0")})
	labelledPolicy, labelledPattern := policy.DeepCopy(), pattern.DeepCopy()
	labelledPolicy.Labels, labelledPattern.Finalizers = map[string]string{"a": "b"}, []string{"a.b/c"}
	for _, r := range []at.Request{request(labelledPolicy, policy), request(labelledPattern, pattern)} {
		a := &at.Authorizer{}
		if _, err := at.Validate(t, pluginFor(a, hub()), r.Attributes()); err != nil || len(a.Asked) > 0 {
			t.Errorf("%s: %v, asked for %v", r.Resource, err, a.Asked)
		}
	}
	labelledPolicy.Spec.Label = "another"
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), request(labelledPolicy, policy).Attributes()); !apierrors.IsInvalid(err) {
		t.Errorf("another label in the spec: %v", err)
	}
}

// TestValidate_DeletedServiceAllowsOtherChanges verifies that a deleted version does not prevent changes of the rest of the object, and does not give
// access to what the user may not use.
func TestValidate_DeletedServiceAllowsOtherChanges(t *testing.T) {
	spec := func(org, url, arch string, versions ...string) edge.PatternService {
		return edge.PatternService{ServiceOrgid: org, ServiceUrl: url, ServiceArch: arch, ServiceVersions: edgetest.Versions(versions...)}
	}
	for name, c := range map[string]struct {
		before, after edge.PatternService
		allowed       bool
	}{
		"another version is gone":                {spec("tools", "open", "", "1.0.0", "0.9.0"), spec("tools", "open", "", "1.0.0", "0.9.0"), true},
		"all are gone":                           {spec("tools", "none", "", "0.9.0"), spec("tools", "none", "", "0.9.0"), true},
		"one that is gone leaves":                {spec("tools", "open", "", "1.0.0", "0.9.0", "0.8.0"), spec("tools", "open", "", "0.9.0"), true},
		"it was not named before":                {spec("tools", "open", "", "1.0.0"), spec("tools", "open", "", "1.0.0", "0.9.0"), false},
		"it came back and is private":            {spec("tools", "closed", "", "1.0.0"), spec("tools", "closed", "", "1.0.0"), false},
		"a private one beside one that is gone":  {spec("tools", "mixed", "", "0.9.0", "2.0.0"), spec("tools", "mixed", "", "0.9.0", "2.0.0"), false},
		"a private one comes in by another arch": {spec("tools", "mixed", "s390x", "3.0.0"), spec("tools", "mixed", "arm64", "3.0.0"), false},
		"gone for one arch, named for all":       {spec("tools", "mixed", "s390x", "2.0.0"), spec("tools", "mixed", "", "2.0.0"), false},
		"gone for all, named for one":            {spec("tools", "none", "", "1.0.0"), spec("tools", "none", "amd64", "1.0.0"), false},
		"named of another service":               {spec("tools", "open", "", "2.0.0"), spec("tools", "none", "", "2.0.0"), false},
		"named of another namespace":             {spec("other", "closed", "", "2.0.0"), spec("tools", "none", "", "2.0.0"), false},
		"named of the own namespace":             {spec("", "none", "", "2.0.0"), spec("tools", "none", "", "2.0.0"), false},
	} {
		policy := func(s edge.PatternService, label string) *edge.DeploymentPolicy {
			p := edgetest.Policy("shop", s.ServiceOrgid, s.ServiceUrl)
			p.Spec.Service.Arch, p.Spec.Service.ServiceVersions, p.Spec.Label = s.ServiceArch, s.ServiceVersions, label
			return p
		}
		before, after := edgetest.Pattern("shop", c.before), edgetest.Pattern("shop", spec("", "own", "", "1"), c.after)
		for _, r := range []at.Request{request(after, before), request(policy(c.after, "new"), policy(c.before, "old"))} {
			if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), r.Attributes()); c.allowed && err != nil || !c.allowed && !apierrors.IsInvalid(err) {
				t.Errorf("%s, %s: got %v, want allowed: %t", name, r.Resource, err, c.allowed)
			}
			// A new object has no previous spec.
			r.Old = nil
			if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), r.Attributes()); !apierrors.IsInvalid(err) {
				t.Errorf("%s, a new one of the %s: %v", name, r.Resource, err)
			}
		}
	}
	// The cache does not have a service that was created again a moment ago.
	late := hub()
	late.Cached = []*edge.EdgeService{}
	p := edgetest.Policy("shop", "tools", "closed", "1.0.0")
	changed := p.DeepCopy()
	changed.Spec.Label = "new"
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, late), request(changed, p).Attributes()); !apierrors.IsInvalid(err) {
		t.Errorf("by a cache that is behind: %v", err)
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	for how, r := range requests("tools", "closed", "", "1.0.0") {
		for name, c := range map[string]struct {
			a   *at.Authorizer
			hub *edgetest.Services
		}{
			"the authorizer": {&at.Authorizer{Err: errors.New("connection refused")}, hub()},
			"it denies":      {&at.Authorizer{Denials: []rbac.Permission{services.Get("tools", "")}}, hub()},
			"the services":   {&at.Authorizer{Grants: []rbac.Permission{services.Get("tools", "")}}, &edgetest.Services{Err: errors.New("etcd is away")}},
		} {
			if _, err := at.Validate(t, pluginFor(c.a, c.hub), r.Attributes()); !apierrors.IsForbidden(err) {
				t.Errorf("%s, %s: %v", how, name, err)
			}
		}
		p := pluginFor(&at.Authorizer{}, nil)
		p.Services = nil
		if _, err := at.Validate(t, p, r.Attributes()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "still starting") {
			t.Errorf("%s, a starting server: %v", how, err)
		}
	}
}

// TestValidate_ReadsStoreBeforeRejection verifies that a service that was created a moment ago is not reported as missing, and that services in
// the cache cause no reads from the store.
func TestValidate_ReadsStoreBeforeRejection(t *testing.T) {
	r := requests("tools", "open", "", "1.0.0")["policy"]
	late := hub()
	late.Cached = []*edge.EdgeService{}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, late), r.Attributes()); err != nil || late.Lists != 1 {
		t.Errorf("%v, after %d lists", err, late.Lists)
	}
	good := hub()
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, good), r.Attributes()); err != nil || good.Lists != 0 {
		t.Errorf("%v, after %d lists of the store", err, good.Lists)
	}
}

// TestValidate_IsBounded verifies that a pattern with the largest number of services causes one list for each service, and a bounded number of
// authorization checks.
func TestValidate_IsBounded(t *testing.T) {
	const most = 16 // twice, of versions twice as many
	stored := &edgetest.Services{}
	var named []edge.PatternService
	for i := range most {
		url := fmt.Sprint("s", i)
		var versions []string
		for v := range 2 * most {
			versions = append(versions, fmt.Sprintf("1.0.%d", v))
			stored.Stored = append(stored.Stored, edgetest.Service("tools", url, fmt.Sprintf("1.0.%d", v), "amd64", nil))
		}
		named = append(named, edge.PatternService{ServiceOrgid: "tools", ServiceUrl: url, ServiceVersions: edgetest.Versions(versions...)},
			edge.PatternService{ServiceOrgid: "tools", ServiceUrl: url, ServiceArch: "amd64", ServiceVersions: edgetest.Versions(versions...)})
	}
	a := &at.Authorizer{}
	_, err := at.Validate(t, pluginFor(a, stored), request(edgetest.Pattern("shop", named...), nil).Attributes())
	if !apierrors.IsInvalid(err) || strings.Count(err.Error(), "does not exist, or user") != maxListed || len(err.Error()) > 4096 {
		t.Errorf("got %v", err)
	}
	if len(a.Asked) > 65 || stored.Lists > most {
		t.Errorf("asked %d questions, and listed %d times", len(a.Asked), stored.Lists)
	}
	all := services.Get("tools", "")
	a = &at.Authorizer{Grants: []rbac.Permission{all}}
	if _, err := at.Validate(t, pluginFor(a, stored), request(edgetest.Pattern("shop", named...), nil).Attributes()); err != nil || !slices.Equal(a.Asked, []rbac.Permission{all}) {
		t.Errorf("%v, asked for %d rules", err, len(a.Asked))
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	for _, r := range []at.Request{{Object: at.Cluster("c1")}, {Group: edge.GroupName, Resource: "edgeservices", Object: &edge.EdgeService{}}} {
		if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), r.Attributes()); err != nil {
			t.Error(err)
		}
	}
	wrong := at.Request{Group: edge.GroupName, Resource: "deploymentpolicies", Object: at.Cluster("c1")}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}, hub()), wrong.Attributes()); !apierrors.IsInternalError(err) {
		t.Errorf("what is no policy: %v", err)
	}
	if New().ValidateInitialization() == nil {
		t.Error("a plugin that can ask nothing is ready")
	}
}
