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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
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
				return boundstest.Created(t, scheme, of(now), ValidateClusterProfile)
			}
			return boundstest.Updated(t, scheme, of(now), of(before), ValidateClusterProfileUpdate)
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
				return append(boundstest.Created(t, scheme, of(now), ValidateCluster), boundstest.Updated(t, scheme, of(now), of(0), ValidateClusterStatusUpdate)...)
			}
			return append(boundstest.Updated(t, scheme, of(now), of(before), ValidateClusterUpdate), boundstest.Updated(t, scheme, of(now), of(before), ValidateClusterStatusUpdate)...)
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
				return append(boundstest.Created(t, scheme, of(now), ValidateAccessRequest), boundstest.Updated(t, scheme, of(now), of(0), ValidateAccessRequestStatusUpdate)...)
			}
			return append(boundstest.Updated(t, scheme, of(now), of(before), ValidateAccessRequestUpdate), boundstest.Updated(t, scheme, of(now), of(before), ValidateAccessRequestStatusUpdate)...)
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
			return boundstest.Updated(t, scheme, r, old, ValidateClusterRequestStatusUpdate)
		}
	}
	// Beyond these, a stored value may stay and shrink. Declared bounds only accept a value that has not changed.
	byHand := sets.New("provider status", "verbs", "groups", "resources", "resource names", "urls")
	for name, c := range map[string]struct {
		most   int
		change func(now, before int) field.ErrorList
	}{
		"versions": {512, profile(func(s *openmcp.ClusterProfileSpec, n int) {
			s.SupportedVersions = some(n, func(int) openmcp.SupportedK8sVersion { return openmcp.SupportedK8sVersion{Version: "1.33.3"} })
		})},
		"version": {253, profile(func(s *openmcp.ClusterProfileSpec, n int) {
			s.SupportedVersions = []openmcp.SupportedK8sVersion{{Version: letters(max(n, 5))}}
		})},
		"wanted version": {253, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Kubernetes.Version = letters(n) })},
		"configs": {64, aCluster(func(c *openmcp.Cluster, n int) {
			c.Spec.ClusterConfigs = some(n, func(i int) openmcp.LocalObjectReference { return openmcp.LocalObjectReference{Name: number(i)} })
		})},
		"name of a config": {253, aCluster(func(c *openmcp.Cluster, n int) {
			c.Spec.ClusterConfigs = []openmcp.LocalObjectReference{{Name: letters(max(n, 1))}}
		})},
		"purposes":   {128, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Purposes = some(max(n, 1), number) })},
		"purpose":    {253, aCluster(func(c *openmcp.Cluster, n int) { c.Spec.Purposes = []string{letters(max(n, 1))} })},
		"api server": {2048, aCluster(func(c *openmcp.Cluster, n int) { c.Status.APIServer = letters(n) })},
		"endpoints": {64, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = some(n, func(i int) openmcp.Endpoint { return openmcp.Endpoint{Name: number(i), URL: "https://a"} })
		})},
		"name of an endpoint": {253, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = openmcp.Endpoints{{Name: letters(max(n, 1)), URL: "https://a"}}
		})},
		"url of an endpoint": {2048, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.Endpoints = openmcp.Endpoints{{Name: "a", URL: letters(max(n, 1))}}
		})},
		"provider status": {maxProviderStatus, aCluster(func(c *openmcp.Cluster, n int) {
			c.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte("{" + strings.Repeat(" ", max(n-2, 0)) + "}")}
		})},
		"conditions of a cluster": {128, aCluster(func(c *openmcp.Cluster, n int) { c.Status.Conditions = conditions(n) })},
		"phase":                   {253, aCluster(func(c *openmcp.Cluster, n int) { c.Status.Phase = letters(n) })},
		"conditions of a request": {128, request(func(s *openmcp.ClusterRequestStatus, n int) { s.Conditions = conditions(n) })},
		"conditions of access":    {128, access(func(r *openmcp.AccessRequest, n int) { r.Status.Conditions = conditions(n) })},
		"permissions":             {128, token(func(c *openmcp.TokenConfig, n int) { c.Permissions = permissions(n) })},
		"rules": {256, token(func(c *openmcp.TokenConfig, n int) {
			c.Permissions = []openmcp.PermissionsRequest{{Rules: rules(n)}}
		})},
		"role refs":      {256, token(func(c *openmcp.TokenConfig, n int) { c.RoleRefs = roleRefs(n) })},
		"verbs":          {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.Verbs = some(n, number) })},
		"groups":         {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.APIGroups = some(n, number) })},
		"resources":      {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.Resources = some(n, number) })},
		"resource names": {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) { r.ResourceNames = some(n, number) })},
		"urls": {maxRuleEntries, rule(func(r *rbacv1.PolicyRule, n int) {
			*r = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: some(n, number)}
		})},
		"issuer":          {2048, oidc(func(o *openmcp.OIDCConfig, n int) { o.Issuer = "https://" + letters(max(n-8, 1)) })},
		"client":          {2048, oidc(func(o *openmcp.OIDCConfig, n int) { o.ClientID = letters(max(n, 1)) })},
		"groups prefix":   {253, oidc(func(o *openmcp.OIDCConfig, n int) { o.GroupsPrefix = new(letters(n)) })},
		"groups claim":    {253, oidc(func(o *openmcp.OIDCConfig, n int) { o.GroupsClaim = new(letters(n)) })},
		"username prefix": {253, oidc(func(o *openmcp.OIDCConfig, n int) { o.UsernamePrefix = new(letters(n)) })},
		"username claim":  {253, oidc(func(o *openmcp.OIDCConfig, n int) { o.UsernameClaim = new(letters(n)) })},
		"scopes":          {64, oidc(func(o *openmcp.OIDCConfig, n int) { o.ExtraScopes = some(n, number) })},
		"scope":           {253, oidc(func(o *openmcp.OIDCConfig, n int) { o.ExtraScopes = []string{letters(n)} })},
		"roles":           {128, oidc(func(o *openmcp.OIDCConfig, n int) { o.Roles = permissions(n) })},
		"bindings": {256, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = some(n, func(int) openmcp.RoleBindings {
				return openmcp.RoleBindings{Subjects: []rbacv1.Subject{}, RoleRefs: []openmcp.RoleRef{}}
			})
		})},
		"subjects": {512, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = []openmcp.RoleBindings{{RoleRefs: roleRefs(1), Subjects: some(n, func(i int) rbacv1.Subject {
				return rbacv1.Subject{Kind: "User", Name: number(i)}
			})}}
		})},
		"roles of a binding": {256, oidc(func(o *openmcp.OIDCConfig, n int) {
			o.RoleBindings = []openmcp.RoleBindings{{Subjects: []rbacv1.Subject{}, RoleRefs: roleRefs(n)}}
		})},
	} {
		for _, try := range []struct {
			now, before int
			refused     bool
		}{
			{c.most, -1, false}, {c.most + 1, -1, true}, {c.most, c.most, false}, {c.most + 1, c.most, true},
			{c.most + 2, c.most + 2, false}, {c.most + 1, c.most + 2, !byHand.Has(name)}, {c.most + 3, c.most + 2, true},
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
	long := &openmcp.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}, Spec: openmcp.ClusterRequestSpec{Purpose: letters(254)}}
	if errs := boundstest.Created(t, scheme, long, ValidateClusterRequest); len(errs) != 1 || errs[0].Type != field.ErrorTypeTooLong {
		t.Errorf("a huge purpose: %v", errs)
	}
}
