// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/localhub"
)

const (
	clusterGroup  = "cluster.open-cluster-management.io"
	registerGroup = "register.open-cluster-management.io"
	setLabel      = clusterGroup + "/clusterset"
	infoPrefix    = "info.open-cluster-management.io/"
)

// timeout is for what takes a moment; nothing that works comes near it.
const timeout = 30 * time.Second

func eventually(t *testing.T, what string, ok func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		done, err := ok(ctx)
		last = err
		return done && err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, timeout, last)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ours(t *testing.T, config *rest.Config) versioned.Interface {
	t.Helper()
	return must(versioned.NewForConfig(config))(t)
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

func kube(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	return must(kubernetes.NewForConfig(config))(t)
}

func admin(t *testing.T) versioned.Interface {
	t.Helper()
	return ours(t, hub.AdminConfig())
}

var sequence atomic.Int64

// unique makes a name that no other test has. It is a DNS label.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, sequence.Add(1)) }

func rule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{clusterGroup}, Resources: []string{resource}, ResourceNames: names,
	}
}

// ruleIn is a rule for another group than that of the clusters.
func ruleIn(group, verbs, resource string, names ...string) rbacv1.PolicyRule {
	r := rule(verbs, resource, names...)
	r.APIGroups = []string{group}
	return r
}

// user makes a user who has just these rights, on the shared hub.
func user(t *testing.T, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	name := unique("user")
	grant(t, hub, name, name, rules...)
	return name
}

// grant gives a user rights under a name, and waits until the front knows.
func grant(t *testing.T, h *localhub.Hub, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := kube(t, h.AdminConfig())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	must(client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))(t)
	must(client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	})
	for _, r := range rules {
		awaitRule(t, client, user, r)
	}
}

func awaitRule(t *testing.T, client kubernetes.Interface, user string, r rbacv1.PolicyRule) {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: r.Verbs[0], Group: r.APIGroups[0], Resource: resource, Subresource: subresource}
	if len(r.ResourceNames) > 0 {
		attributes.Name = r.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
	eventually(t, "the right of "+user, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

func cluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}
}

// newCluster creates a cluster as admin on the shared hub.
func newCluster(t *testing.T, name string, labels map[string]string) *clusterv1.ManagedCluster {
	t.Helper()
	c := must(admin(t).ClusterV1().ManagedClusters().Create(t.Context(), cluster(name, labels), metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = admin(t).ClusterV1().ManagedClusters().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	return c
}

func legacySet(name string) *v1beta2.ManagedClusterSet {
	return &v1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func exclusiveSet(name, key, value string) *v1beta1.ManagedClusterSet {
	return &v1beta1.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ManagedClusterSetSpec{ClusterSelector: v1beta1.ManagedClusterSelector{
			SelectorType: v1beta1.ExclusiveLabel, ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: key, Value: value},
		}},
	}
}

// newSet creates a set with the implied label as admin on the shared hub.
func newSet(t *testing.T, name string) {
	t.Helper()
	must(admin(t).ClusterV1beta2().ManagedClusterSets().Create(t.Context(), legacySet(name), metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = admin(t).ClusterV1beta2().ManagedClusterSets().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
}

func wantForbidden(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want a 403", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the 403 does not say %q: %v", part, err)
		}
	}
}

// kubectl runs kubectl on the shared hub and returns what it says.
func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := hub.Kubectl(t.Context(), args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustKubectl is kubectl that has to succeed.
func mustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
