// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// rights are what a user may do, "VERB RESOURCE.GROUP", and "VERB RESOURCE.GROUP NAME" where only one object may be used so.
type rights map[string]bool

// TestDetached_MintedKubeconfigsMayWhatIsDocumented asks the managed cluster for each verb on each resource that it has, and in each of its
// namespaces for all rules, which may be for one namespace or one name only, and for verbs and resources that discovery does not show.
func TestDetached_MintedKubeconfigsMayWhatIsDocumented(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	none := withoutRights(t, w.managed.Hub)
	each := may(t, w.managed.Hub, none)
	namespaces := harness.Must(harness.Kube(t, w.managed.AdminConfig()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t).Items
	if len(namespaces) < 5 {
		t.Fatalf("the managed cluster has %d namespaces, without that of the agent", len(namespaces))
	}
	for part, role := range map[string]string{"registration": "", "work": "admin"} {
		want, named := documented(t, "K-"+part+"-sa")
		if role != "" {
			maps.Copy(want, w.ofRole(role))
		}
		config := j.minted("external-managed-kubeconfig-" + part)
		got := may(t, w.managed.Hub, config)
		for right := range got {
			if !want[right] && !each[right] {
				t.Errorf("the kubeconfig of the %s agent may %s, which is not documented", part, right)
			}
		}
		for right := range want {
			verb, resource, _ := strings.Cut(right, " ")
			if !got[right] && !allowed(t, config, verb, schema.ParseGroupResource(resource), "", "") { // roles name resources that are not there, too
				t.Errorf("the kubeconfig of the %s agent may not %s, which is documented", part, right)
			}
		}
		for right, name := range named {
			verb, resource, _ := strings.Cut(right, " ")
			if !allowed(t, config, verb, schema.ParseGroupResource(resource), "", name) {
				t.Errorf("the kubeconfig of the %s agent may not %s %s, which is documented", part, right, name)
			}
			want[right+" "+name] = true
		}
		for _, namespace := range namespaces {
			rules, base := rightsIn(t, config, namespace.Name), rightsIn(t, none, namespace.Name)
			for right := range rules {
				if !want[right] && !base[right] {
					t.Errorf("the kubeconfig of the %s agent may %s in %s, which is not documented", part, right, namespace.Name)
				}
			}
			for right := range want {
				if !rules[right] {
					t.Errorf("the kubeconfig of the %s agent has no rule to %s in %s, which is documented", part, right, namespace.Name)
				}
			}
		}
	}
}

// minted is the kubeconfig of a part, as its pod has it.
func (j *joined) minted(name string) *rest.Config {
	j.Helper()
	secret := harness.Must(harness.Kube(j.T, j.management.AdminConfig()).CoreV1().Secrets(j.namespace).Get(j.Context(), name, metav1.GetOptions{}))(j.T)
	config := harness.Must(clientcmd.Load(secret.Data["kubeconfig"]))(j.T)
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	return &rest.Config{Host: cluster.Server, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
		BearerToken: string(secret.Data["token"]), QPS: -1}
}

// withoutRights is a ServiceAccount that was given nothing: it may what each may.
func withoutRights(t *testing.T, on *localhub.Hub) *rest.Config {
	t.Helper()
	accounts := harness.Kube(t, on.AdminConfig()).CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account := harness.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: harness.Named("without-rights")}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = accounts.Delete(context.WithoutCancel(t.Context()), account.Name, metav1.DeleteOptions{}) })
	return accountOf(t, on, account.Namespace, account.Name)
}

// accountOf is a ServiceAccount of a cluster.
func accountOf(t *testing.T, on *localhub.Hub, namespace, name string) *rest.Config {
	t.Helper()
	token := harness.Must(harness.Kube(t, on.AdminConfig()).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	config := rest.AnonymousClientConfig(on.AdminConfig())
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// special are rights to more than objects, of which most are on resources that discovery does not show.
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

// may asks a cluster for everything, in all namespaces.
func may(t *testing.T, on *localhub.Hub, config *rest.Config) rights {
	t.Helper()
	_, lists, err := harness.Kube(t, on.AdminConfig()).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv := harness.Must(schema.ParseGroupVersion(list.GroupVersion))(t)
		for _, resource := range list.APIResources {
			all[gv.WithResource(resource.Name).GroupResource()] = true
		}
	}
	if len(all) < 100 {
		t.Fatalf("discovery shows %d resources", len(all))
	}
	got, mu := rights{}, sync.Mutex{}
	questions := make(chan schema.GroupResource)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for resource := range questions {
				for _, verb := range verbs {
					if allowed(t, config, verb, resource, "", "") {
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
			if allowed(t, config, verb, resource, "", "") {
				got[verb+" "+resource.String()] = true
			}
		}
	}
	return got
}

// rightsIn are the rules that a user has in a namespace: of RBAC, so those for all namespaces are among them.
func rightsIn(t *testing.T, config *rest.Config, namespace string) rights {
	t.Helper()
	all, status := rights{}, reviewIn(t, config, namespace)
	for _, rule := range status.ResourceRules {
		all.add(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)
	}
	for _, rule := range status.NonResourceRules {
		all.add(rule.Verbs, []string{""}, rule.NonResourceURLs, nil)
	}
	return all
}

// add adds a rule. Without names it is for all.
func (r rights) add(verbs, groups, resources, names []string) {
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

// allowed asks for one right: in all namespaces, and for all names, unless they are given.
func allowed(t *testing.T, config *rest.Config, verb string, resource schema.GroupResource, namespace, name string) bool {
	t.Helper()
	of, subresource, _ := strings.Cut(resource.Resource, "/")
	review, err := harness.Kube(t, config).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Resource: of, Subresource: subresource, Name: name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("%s %s: %v", verb, resource, err)
		return false
	}
	return review.Status.Allowed
}

// ofRole is what a ClusterRole of the managed cluster gives.
func (w *world) ofRole(name string) rights {
	w.Helper()
	given := rights{}
	role := harness.Must(harness.Kube(w.T, w.managed.AdminConfig()).RbacV1().ClusterRoles().Get(w.Context(), name, metav1.GetOptions{}))(w.T)
	for _, rule := range role.Rules {
		given.add(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)
	}
	return given
}

// documented is what the documentation says of an account on the managed cluster: for all objects, and for those of one name.
func documented(t *testing.T, account string) (all rights, named map[string]string) {
	t.Helper()
	all, named = rights{}, map[string]string{}
	for line := range strings.Lines(string(harness.Must(os.ReadFile(filepath.Join(harness.Root, "docs", "permissions.md")))(t))) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.TrimSpace(cells[0]) != "`"+account+"`" || strings.TrimSpace(cells[1]) != "managed" {
			continue
		}
		resource, name, _ := strings.Cut(strings.TrimSpace(cells[3]), " named ")
		for verb := range strings.SplitSeq(strings.TrimSpace(cells[4]), ", ") {
			right := fmt.Sprintf("%s %s", verb, strings.Trim(resource, "`"))
			if name != "" {
				named[right] = name
			} else {
				all[right] = true
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("the documentation says nothing of %s", account)
	}
	return all, named
}
