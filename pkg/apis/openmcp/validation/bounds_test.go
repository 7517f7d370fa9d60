// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

func some[T any](n int, entry func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

func number(i int) string { return fmt.Sprintf("a%d.b", i) }

func letters(n int) string { return strings.Repeat("x", n) }

func conditions(n int) []metav1.Condition {
	return some(n, func(i int) metav1.Condition {
		return metav1.Condition{Type: number(i), Status: "True", Reason: "R", LastTransitionTime: metav1.Unix(1, 0)}
	})
}

func rules(n int) []rbacv1.PolicyRule {
	return some(n, func(int) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/a"}}
	})
}

func permissions(n int) []openmcp.PermissionsRequest {
	return some(n, func(int) openmcp.PermissionsRequest { return openmcp.PermissionsRequest{Rules: rules(1)} })
}

func roleRefs(n int) []openmcp.RoleRef {
	return some(n, func(i int) openmcp.RoleRef { return openmcp.RoleRef{Kind: "ClusterRole", Name: number(i)} })
}

func TestBounds_OfEveryFieldOfOthers(t *testing.T) {
	m := metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1", UID: "u"}
	profile := func(fill func(*openmcp.ClusterProfileSpec, int)) func(now, before int) field.ErrorList {
		of := func(n int) *openmcp.ClusterProfile {
			p := &openmcp.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", UID: "u"}}
			p.Spec.ProviderRef.Name, p.Spec.ProviderConfigRef.Name, p.Spec.SupportedVersions = "p", "c", []openmcp.SupportedK8sVersion{}
			fill(&p.Spec, n)
			return p
		}
		return func(now, before int) field.ErrorList {
			if before < 0 {
				return ValidateClusterProfile(of(now))
			}
			return ValidateClusterProfileUpdate(of(now), of(before))
		}
	}
	aCluster := func(fill func(*openmcp.Cluster, int)) func(now, before int) field.ErrorList {
		of := func(n int) *openmcp.Cluster {
			c := &openmcp.Cluster{ObjectMeta: m, Spec: openmcp.ClusterSpec{Profile: "p", Tenancy: openmcp.TENANCY_SHARED}}
			fill(c, n)
			return c
		}
		return func(now, before int) field.ErrorList {
			if before < 0 {
				return append(ValidateCluster(of(now)), ValidateClusterStatusUpdate(of(now), of(0))...)
			}
			return append(ValidateClusterUpdate(of(now), of(before)), ValidateClusterStatusUpdate(of(now), of(before))...)
		}
	}
	access := func(fill func(*openmcp.AccessRequest, int)) func(now, before int) field.ErrorList {
		of := func(n int) *openmcp.AccessRequest {
			r := &openmcp.AccessRequest{ObjectMeta: m}
			r.Spec.ClusterRef = &openmcp.ObjectReference{Name: "c", Namespace: "n"}
			fill(r, n)
			if r.Spec.OIDC == nil && r.Spec.Token == nil {
				r.Spec.Token = &openmcp.TokenConfig{}
			}
			return r
		}
		return func(now, before int) field.ErrorList {
			if before < 0 {
				return append(ValidateAccessRequest(of(now)), ValidateAccessRequestStatusUpdate(of(now), of(0))...)
			}
			return append(ValidateAccessRequestUpdate(of(now), of(before)), ValidateAccessRequestStatusUpdate(of(now), of(before))...)
		}
	}
	token := func(fill func(*openmcp.TokenConfig, int)) func(now, before int) field.ErrorList {
		return access(func(r *openmcp.AccessRequest, n int) {
			r.Spec.Token = &openmcp.TokenConfig{}
			fill(r.Spec.Token, n)
		})
	}
	oidc := func(fill func(*openmcp.OIDCConfig, int)) func(now, before int) field.ErrorList {
		return access(func(r *openmcp.AccessRequest, n int) {
			r.Spec.OIDC = &openmcp.OIDCConfig{OIDCProviderConfig: openmcp.OIDCProviderConfig{
				Name: "o", Issuer: "https://oidc.example.com", ClientID: "c", RoleBindings: []openmcp.RoleBindings{}}}
			fill(r.Spec.OIDC, n)
		})
	}
	rule := func(fill func(*rbacv1.PolicyRule, int)) func(now, before int) field.ErrorList {
		return token(func(c *openmcp.TokenConfig, n int) {
			r := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
			fill(&r, max(n, 1))
			c.Permissions = []openmcp.PermissionsRequest{{Rules: []rbacv1.PolicyRule{r}}}
		})
	}
	request := func(fill func(*openmcp.ClusterRequestStatus, int)) func(now, before int) field.ErrorList {
		return func(now, before int) field.ErrorList {
			r, old := &openmcp.ClusterRequest{ObjectMeta: m}, &openmcp.ClusterRequest{ObjectMeta: m}
			fill(&r.Status, now)
			fill(&old.Status, max(before, 0))
			return ValidateClusterRequestStatusUpdate(r, old)
		}
	}
	for name, c := range map[string]struct {
		most   int
		change func(now, before int) field.ErrorList
	}{
		"versions": {maxVersions, profile(func(s *openmcp.ClusterProfileSpec, n int) {
			s.SupportedVersions = some(n, func(int) openmcp.SupportedK8sVersion { return openmcp.SupportedK8sVersion{Version: "1.33.3"} })
		})},
		"version": {maxName, profile(func(s *openmcp.ClusterProfileSpec, n int) {
			s.SupportedVersions = []openmcp.SupportedK8sVersion{{Version: letters(max(n, 5))}}
		})},
		"wanted version": {maxName, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Kubernetes.Version = letters(n) })},
		"configs": {maxClusterConfigs, aCluster(func(c *openmcp.Cluster, n int) {
			c.Spec.ClusterConfigs = some(n, func(i int) openmcp.LocalObjectReference { return openmcp.LocalObjectReference{Name: number(i)} })
		})},
		"name of a config": {maxName, aCluster(func(c *openmcp.Cluster, n int) {
			c.Spec.ClusterConfigs = []openmcp.LocalObjectReference{{Name: letters(max(n, 1))}}
		})},
		"purposes":   {maxPurposes, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Purposes = some(max(n, 1), number) })},
		"purpose":    {maxName, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Purposes = []string{letters(max(n, 1))} })},
		"api server": {maxURL, aCluster(func(c *openmcp.Cluster, n int) { c.Status.APIServer = letters(n) })},
		"endpoints": {maxEndpoints, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = some(n, func(i int) openmcp.Endpoint { return openmcp.Endpoint{Name: number(i), URL: "https://a"} })
		})},
		"name of an endpoint": {maxName, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = openmcp.Endpoints{{Name: letters(max(n, 1)), URL: "https://a"}}
		})},
		"url of an endpoint": {maxURL, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = openmcp.Endpoints{{Name: "a", URL: letters(max(n, 1))}}
		})},
		"provider status": {maxProviderStatus, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte("{" + strings.Repeat(" ", max(n-2, 0)) + "}")}
		})},
		"conditions of a cluster": {maxConditions, aCluster(func(c *openmcp.Cluster, n int) { c.Status.Conditions = conditions(n) })},
		"phase":                   {maxName, aCluster(func(c *openmcp.Cluster, n int) { c.Status.Phase = letters(n) })},
		"conditions of a request": {maxConditions, request(func(s *openmcp.ClusterRequestStatus, n int) { s.Conditions = conditions(n) })},
		"conditions of access":    {maxConditions, access(func(r *openmcp.AccessRequest, n int) { r.Status.Conditions = conditions(n) })},
		"permissions":             {maxRoles, token(func(c *openmcp.TokenConfig, n int) { c.Permissions = permissions(n) })},
		"rules": {maxRules, token(func(c *openmcp.TokenConfig, n int) {
			c.Permissions = []openmcp.PermissionsRequest{{Rules: rules(n)}}
		})},
		"role refs":      {maxRoleRefs, token(func(c *openmcp.TokenConfig, n int) { c.RoleRefs = roleRefs(n) })},
		"verbs":          {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.Verbs = some(n, number) })},
		"groups":         {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.APIGroups = some(n, number) })},
		"resources":      {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.Resources = some(n, number) })},
		"resource names": {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.ResourceNames = some(n, number) })},
		"urls": {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) {
			*r = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: some(n, number)}
		})},
		"issuer":          {maxURL, oidc(func(o *openmcp.OIDCConfig, n int) { o.Issuer = "https://" + letters(max(n-8, 1)) })},
		"client":          {maxURL, oidc(func(o *openmcp.OIDCConfig, n int) { o.ClientID = letters(max(n, 1)) })},
		"groups prefix":   {maxName, oidc(func(o *openmcp.OIDCConfig, n int) { o.GroupsPrefix = new(letters(n)) })},
		"groups claim":    {maxName, oidc(func(o *openmcp.OIDCConfig, n int) { o.GroupsClaim = new(letters(n)) })},
		"username prefix": {maxName, oidc(func(o *openmcp.OIDCConfig, n int) { o.UsernamePrefix = new(letters(n)) })},
		"username claim":  {maxName, oidc(func(o *openmcp.OIDCConfig, n int) { o.UsernameClaim = new(letters(n)) })},
		"scopes":          {maxExtraScopes, oidc(func(o *openmcp.OIDCConfig, n int) { o.ExtraScopes = some(n, number) })},
		"scope":           {maxName, oidc(func(o *openmcp.OIDCConfig, n int) { o.ExtraScopes = []string{letters(n)} })},
		"roles":           {maxRoles, oidc(func(o *openmcp.OIDCConfig, n int) { o.Roles = permissions(n) })},
		"bindings": {maxRoleBindings, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = some(n, func(int) openmcp.RoleBindings {
				return openmcp.RoleBindings{Subjects: []rbacv1.Subject{}, RoleRefs: []openmcp.RoleRef{}}
			})
		})},
		"subjects": {maxSubjects, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = []openmcp.RoleBindings{{RoleRefs: roleRefs(1), Subjects: some(n, func(i int) rbacv1.Subject {
				return rbacv1.Subject{Kind: "User", Name: number(i)}
			})}}
		})},
		"roles of a binding": {maxRoleRefs, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = []openmcp.RoleBindings{{Subjects: []rbacv1.Subject{}, RoleRefs: roleRefs(n)}}
		})},
	} {
		for _, try := range []struct {
			now, before int
			refused     bool
		}{
			{c.most, -1, false}, {c.most + 1, -1, true}, {c.most, c.most, false}, {c.most + 1, c.most, true},
			{c.most + 2, c.most + 2, false}, {c.most + 1, c.most + 2, false}, {c.most + 3, c.most + 2, true},
		} {
			errs := c.change(try.now, try.before)
			for _, err := range errs {
				if err.Type != field.ErrorTypeTooMany && err.Type != field.ErrorTypeTooLong {
					t.Errorf("%s: %v", name, err)
				}
			}
			if (len(errs) > 0) != try.refused {
				t.Errorf("%s: %d after %d: %v", name, try.now, try.before, errs)
			}
		}
	}
	long := &openmcp.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}, Spec: openmcp.ClusterRequestSpec{Purpose: letters(maxName + 1)}}
	if errs := ValidateClusterRequest(long); len(errs) != 1 || errs[0].Type != field.ErrorTypeTooLong {
		t.Errorf("a huge purpose: %v", errs)
	}
}
