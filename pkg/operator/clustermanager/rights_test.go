// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// right is one permission on a hub.
type right struct{ resource, verb, name string }

// checkRights reviews the permissions of each minted kubeconfig on the hub, and compares them with docs/permissions.md: no more, and no less. The
// permissions that every ServiceAccount has are left out. The tokens are invalid on the management cluster.
func checkRights(t *testing.T, w *world, cm *operatorv1.ClusterManager) {
	t.Helper()
	var want []string
	for _, account := range []string{deploy.APIServer, deploy.Manager, deploy.Approver, providerAccount} {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: cm.ServerNamespace(), Name: deploy.KubeconfigSecret(account)}
		if err := w.management.client.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		config := rest.AnonymousClientConfig(w.hub.AdminConfig())
		config.BearerToken = string(secret.Data[operatorv1.KeyToken])
		anyone := w.hub.UserConfig("system:serviceaccount:elsewhere:default", "system:serviceaccounts", "system:serviceaccounts:elsewhere", "system:authenticated")
		everywhere := rightsIn(t, config, "elsewhere", rightsIn(t, anyone, "elsewhere", nil))
		want = append(want, rows(account, "everywhere", everywhere)...)
		known := rightsIn(t, config, "elsewhere", nil)
		for _, namespace := range []string{"clusterhub-access", "clusterhub-registration", "clusterhub-system", "default", "kube-system", "kube-public", "openmcp-system"} {
			want = append(want, rows(account, "in `"+namespace+"`", rightsIn(t, config, namespace, known))...)
		}
		elsewhere := rest.AnonymousClientConfig(w.management.AdminConfig())
		elsewhere.BearerToken = config.BearerToken
		if _, err := kubernetes.NewForConfigOrDie(elsewhere).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("the management cluster takes the token of %s: %v", account, err)
		}
	}
	docs, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## What the servers of a hub may do\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for _, line := range strings.Split(section, "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	for _, row := range want {
		if !slices.Contains(got, row) {
			t.Errorf("docs/permissions.md does not say:\n%s", row)
		}
	}
	for _, row := range got {
		if !slices.Contains(want, row) {
			t.Errorf("docs/permissions.md says what is not so:\n%s", row)
		}
	}
}

// rightsIn returns the rights in a namespace, without the known ones.
func rightsIn(t *testing.T, config *rest.Config, namespace string, known map[right]bool) map[right]bool {
	t.Helper()
	review, err := kubernetes.NewForConfigOrDie(config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("the hub does not know all rights: %s", review.Status.EvaluationError)
	}
	all := map[right]bool{}
	add := func(resource string, verbs, names []string) {
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range verbs {
			for _, name := range names {
				if r := (right{resource, verb, name}); !known[r] {
					all[r] = true
				}
			}
		}
	}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				if group != "" {
					name += "." + group
				}
				if sub != "" {
					name += "/" + sub
				}
				add(name, rule.Verbs, rule.ResourceNames)
			}
		}
	}
	for _, rule := range review.Status.NonResourceRules {
		for _, path := range rule.NonResourceURLs {
			add(path, rule.Verbs, nil)
		}
	}
	return all
}

var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// rows returns the lines of the table in the documentation: resources with the same verbs and names share one.
func rows(account, where string, rights map[right]bool) (lines []string) {
	// The verbs by resource and name, the names by resource and verbs, and the resources by verbs and names.
	verbs := map[right][]string{}
	for r := range rights {
		key := right{resource: r.resource, name: r.name}
		verbs[key] = append(verbs[key], r.verb)
	}
	names := map[right][]string{}
	for key, all := range verbs {
		slices.SortFunc(all, func(a, b string) int {
			if x, y := slices.Index(verbOrder, a), slices.Index(verbOrder, b); x != y {
				return x - y
			}
			return strings.Compare(a, b)
		})
		by := right{resource: key.resource, verb: strings.Join(all, ", ")}
		if key.name != "" {
			by.name = "named"
			names[by] = append(names[by], "`"+key.name+"`")
		} else {
			names[by] = []string{"all"}
		}
	}
	resources := map[right][]string{}
	for key, all := range names {
		slices.Sort(all)
		by := right{verb: key.verb, name: strings.Join(all, ", ")}
		resources[by] = append(resources[by], "`"+key.resource+"`")
	}
	for key, all := range resources {
		slices.Sort(all)
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", account, strings.Join(all, ", "), key.name, key.verb, where))
	}
	slices.Sort(lines)
	return lines
}
