// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/leak"
)

// apart tries to reach one hub with the credentials of the servers of a different hub on the same management cluster.
func apart(t *testing.T, m *harness.Management, one, other *served) {
	t.Helper()
	t.Run("pods hold nothing but the way to their own hub", func(t *testing.T) {
		one.holdsNothingOf(t, m, other)
		other.holdsNothingOf(t, m, one)
	})
	t.Run("accounts of pods may nothing on the management cluster", func(t *testing.T) {
		none := withoutRights(t, m.Instance)
		for _, hub := range []*served{one, other} {
			for _, account := range slices.Sorted(maps.Keys(hub.tokens(t, m))) {
				config := accountOf(t, m.Instance, harness.ServerNamespace(hub.name), account)
				for _, namespace := range []string{harness.ServerNamespace(one.name), harness.ServerNamespace(other.name), metav1.NamespaceSystem} {
					if got, want := rulesIn(t, config, namespace), rulesIn(t, none, namespace); !slices.Equal(got, want) {
						t.Errorf("%s of %s may %v in %s, want what each account may: %v", account, hub.name, got, namespace, want)
					}
					for _, verb := range operatortest.Verbs {
						if allowed(t, config, verb, corev1.Resource("secrets"), namespace, "") {
							t.Errorf("%s of %s may %s secrets in %s", account, hub.name, verb, namespace)
						}
					}
				}
				_, err := harness.Kube(t, config).CoreV1().Secrets(harness.ServerNamespace(other.name)).List(t.Context(), metav1.ListOptions{})
				harness.WantForbidden(t, err)
			}
		}
	})
	t.Run("minted tokens are no tokens of the management cluster", func(t *testing.T) {
		for _, hub := range []*served{one, other} {
			for account, token := range hub.tokens(t, m) {
				config := rest.AnonymousClientConfig(m.AdminConfig())
				config.BearerToken = token
				if _, err := harness.Get(t, config, "/api"); !apierrors.IsUnauthorized(err) {
					t.Errorf("the token of %s for %s on the management cluster: %v, want a 401", hub.name, account, err)
				}
			}
		}
	})
	t.Run("sets of one name are two", func(t *testing.T) {
		for _, hub := range []*served{one, other} {
			hub.set(t, "of-both", hub.name)
		}
		for _, hub := range []*served{one, other} {
			sets := harness.Ours(t, hub.AdminConfig()).ClusterV1beta1().ManagedClusterSets()
			if set := harness.Must(sets.Get(t.Context(), "of-both", metav1.GetOptions{}))(t); set.Spec.ClusterSelector.LabelSelector.MatchLabels["of"] != hub.name {
				t.Errorf("%s has the set %+v", hub.name, set.Spec)
			}
			// On one hub the set is deleted first, and on the other one it still exists.
			if err := sets.Delete(t.Context(), "of-both", metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s: %v", hub.name, err)
			}
		}
	})
}

// set creates a set that selects by a label.
func (s *served) set(t *testing.T, name, of string) {
	t.Helper()
	set := harness.LabelSet(name, map[string]string{"of": of})
	harness.Must(harness.Ours(t, s.AdminConfig()).ClusterV1beta1().ManagedClusterSets().Create(t.Context(), set, metav1.CreateOptions{}))(t)
}

// holdsNothingOf checks everything that pods of the hub mount, and the other objects in their namespace.
func (s *served) holdsNothingOf(t *testing.T, m *harness.Management, other *served) {
	t.Helper()
	accounts := map[string]bool{}
	for _, pod := range s.pods(t, m) {
		accounts[pod.Spec.ServiceAccountName] = true
		if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || pod.Spec.HostNetwork {
			t.Errorf("%s has a token of the management cluster, or its network: %+v", pod.Name, pod.Spec)
		}
		for _, volume := range pod.Spec.Volumes {
			if secret := volume.Secret; volume.EmptyDir == nil && volume.PersistentVolumeClaim == nil &&
				(secret == nil || secret.SecretName != deploy.KubeconfigSecret(pod.Spec.ServiceAccountName)) {
				t.Errorf("%s mounts %+v", pod.Name, volume)
			}
		}
	}
	if len(accounts) != 3 {
		t.Errorf("%s has pods of %v, want those of three servers", s.name, accounts)
	}
	theirs, own := leak.Secrets{}, other.secrets(t, m)
	for _, secret := range own {
		for key, value := range secret.Data {
			theirs.AddFrom(secret.Name+" "+key, value)
		}
	}
	dump := func(secrets []corev1.Secret) (all []byte) {
		for _, secret := range secrets {
			for _, value := range secret.Data {
				all = append(append(all, value...), '\n')
			}
		}
		return all
	}
	if found := theirs.Find(dump(own)); len(theirs) == 0 || len(found) != len(theirs) {
		t.Errorf("of the secrets of %s only %v are found where they are", other.name, found)
	}
	for _, found := range theirs.Find(dump(s.secrets(t, m))) {
		t.Errorf("the namespace of %s has %s of %s", s.name, found, other.name)
	}
}

func (s *served) pods(t *testing.T, m *harness.Management) []corev1.Pod {
	t.Helper()
	return harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().Pods(harness.ServerNamespace(s.name)).List(t.Context(), metav1.ListOptions{}))(t).Items
}

func (s *served) secrets(t *testing.T, m *harness.Management) []corev1.Secret {
	t.Helper()
	return harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().Secrets(harness.ServerNamespace(s.name)).List(t.Context(), metav1.ListOptions{}))(t).Items
}

// lives returns the state of a hub's servers: each pod with its restarts, and each Secret with its content. Any effect of a different hub on them is
// visible in it.
func (s *served) lives(t *testing.T, m *harness.Management) (all []string) {
	t.Helper()
	all = livesOf(s.pods(t, m))
	for _, secret := range s.secrets(t, m) {
		all = append(all, fmt.Sprintf("secret %s %s %s", secret.Name, secret.UID, secret.ResourceVersion))
	}
	slices.Sort(all)
	return all
}

func (j *joined) pods() []corev1.Pod {
	j.Helper()
	return harness.Must(harness.Kube(j.T, j.management.AdminConfig()).CoreV1().Pods(j.namespace).List(j.Context(), metav1.ListOptions{}))(j.T).Items
}

// livesOf returns pods with their restarts.
func livesOf(pods []corev1.Pod) (all []string) {
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			all = append(all, fmt.Sprintf("pod %s %s, %d restarts of %s", pod.Name, pod.UID, c.RestartCount, c.Name))
		}
	}
	slices.Sort(all)
	return all
}

// goesBeside deletes the hub. A different hub on the same management cluster continues unchanged, and still has a cluster.
func (s *served) goesBeside(t *testing.T, m *harness.Management, other *served, j *joined) {
	t.Helper()
	before, agent := other.lives(t, m), livesOf(j.pods())
	harness.MustKubectlOf(t, m.Instance, "", "delete", "clustermanager", s.name, "--timeout="+harness.Timeout.String())
	j.bringsBy("after-the-other", j.name+"-after-the-other")
	if now := other.lives(t, m); !slices.Equal(now, before) {
		t.Errorf("%s was\n%s\nand is\n%s", other.name, strings.Join(before, "\n"), strings.Join(now, "\n"))
	}
	if now := livesOf(j.pods()); !slices.Equal(now, agent) {
		t.Errorf("the agent was\n%s\nand is\n%s", strings.Join(agent, "\n"), strings.Join(now, "\n"))
	}
	harness.MustKubectlOf(t, other.Instance, "", "delete", "manifestwork", "after-the-other", "-n", j.name, "--timeout="+harness.Timeout.String())
}

// rulesIn returns the rules of a user in a namespace.
func rulesIn(t *testing.T, config *rest.Config, namespace string) (rules []string) {
	t.Helper()
	status := reviewIn(t, config, namespace)
	for _, rule := range status.ResourceRules {
		rules = append(rules, string(harness.Must(json.Marshal(rule))(t)))
	}
	for _, rule := range status.NonResourceRules {
		rules = append(rules, string(harness.Must(json.Marshal(rule))(t)))
	}
	slices.Sort(rules) // a server returns them in any order
	return rules
}

func reviewIn(t *testing.T, config *rest.Config, namespace string) authorizationv1.SubjectRulesReviewStatus {
	t.Helper()
	review := harness.Must(harness.Kube(t, config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{}))(t)
	if review.Status.Incomplete {
		t.Fatalf("the cluster does not know all rules: %s", review.Status.EvaluationError)
	}
	return review.Status
}
