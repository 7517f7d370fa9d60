// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Rights are permissions of a user, as "VERB RESOURCE.GROUP", or "VERB RESOURCE.GROUP NAME" for a single object.
type Rights map[string]bool

// Add adds a rule. Without names it is for all objects.
func (r Rights) Add(verbs, groups, resources, names []string) {
	for _, group := range groups {
		for _, resource := range resources {
			for _, verb := range verbs {
				right := verb + " " + schema.GroupResource{Group: group, Resource: resource}.String()
				if len(names) == 0 {
					r[right] = true
				}
				for _, name := range names {
					r[right+" "+name] = true
				}
			}
		}
	}
}

// Verbs are the verbs on objects.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// special are verbs with special meanings, most of them on resources that discovery does not return.
var special = map[string][]schema.GroupResource{
	"bind":     {{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"}},
	"escalate": {{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"}},
	"impersonate": {{Resource: "users"}, {Resource: "groups"}, {Resource: "serviceaccounts"},
		{Group: "authentication.k8s.io", Resource: "uids"}, {Group: "authentication.k8s.io", Resource: "userextras/any"}},
	"approve": {{Group: "certificates.k8s.io", Resource: "signers"}},
	"sign":    {{Group: "certificates.k8s.io", Resource: "signers"}},
	"attest":  {{Group: "certificates.k8s.io", Resource: "signers"}},
	"use":     {{Group: "policy", Resource: "podsecuritypolicies"}, {Group: "security.openshift.io", Resource: "securitycontextconstraints"}},
	"*":       {{Group: "*", Resource: "*"}},
}

// May checks all rights on the resources of a cluster, in all namespaces. The admin discovers the resources.
func May(t testing.TB, admin, config *rest.Config) Rights {
	t.Helper()
	return MayIn(t, admin, config, "")
}

// MayIn is like May, in one namespace.
func MayIn(t testing.TB, admin, config *rest.Config, namespace string) Rights {
	t.Helper()
	_, lists, err := kube(t, admin).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			all[gv.WithResource(resource.Name).GroupResource()] = true
		}
	}
	if len(all) < 100 {
		t.Fatalf("discovery shows %d resources", len(all))
	}
	got, mu := Rights{}, sync.Mutex{}
	questions := make(chan schema.GroupResource)
	var asking sync.WaitGroup
	client := kube(t, config)
	for range 8 {
		asking.Go(func() {
			for resource := range questions {
				for _, verb := range Verbs {
					if allowed(t, client, verb, resource, namespace, "") {
						mu.Lock()
						got[verb+" "+resource.String()] = true
						mu.Unlock()
					}
				}
			}
		})
	}
	for resource := range all {
		questions <- resource
	}
	close(questions)
	asking.Wait()
	for verb, resources := range special {
		for _, resource := range resources {
			if allowed(t, client, verb, resource, namespace, "") {
				got[verb+" "+resource.String()] = true
			}
		}
	}
	return got
}

// Allowed checks one right: in all namespaces, and for all names, unless they are given.
func Allowed(t testing.TB, config *rest.Config, verb string, resource schema.GroupResource, namespace, name string) bool {
	t.Helper()
	return allowed(t, kube(t, config), verb, resource, namespace, name)
}

func allowed(t testing.TB, client kubernetes.Interface, verb string, resource schema.GroupResource, namespace, name string) bool {
	t.Helper()
	of, subresource, _ := strings.Cut(resource.Resource, "/")
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Resource: of, Subresource: subresource, Name: name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("%s %s: %v", verb, resource, err)
		return false
	}
	return review.Status.Allowed
}

// RightsIn returns the rules of a user in a namespace. They are those of RBAC, and include rules for all namespaces.
func RightsIn(t testing.TB, config *rest.Config, namespace string) Rights {
	t.Helper()
	review, err := kube(t, config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("not all rules are known: %s", review.Status.EvaluationError)
	}
	all := Rights{}
	for _, rule := range review.Status.ResourceRules {
		all.Add(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)
	}
	for _, rule := range review.Status.NonResourceRules {
		all.Add(rule.Verbs, []string{""}, rule.NonResourceURLs, nil)
	}
	return all
}

// AccountOf returns a configuration with the identity of a ServiceAccount.
func AccountOf(t testing.TB, admin *rest.Config, namespace, name string) *rest.Config {
	t.Helper()
	token, err := kube(t, admin).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}

func kube(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
