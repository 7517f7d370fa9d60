// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// atOnce is far more than the propagation of a change of the rules takes, and far less than decisions are cached.
const atOnce = 2 * time.Second

// act is a request that needs one right.
type act struct {
	// base is an additional right that the act needs, right is the one that is granted and revoked.
	base, right rbacv1.PolicyRule
	// namespace is the namespace of the RoleBinding with the right.
	namespace string
	do        func(context.Context, versioned.Interface) error
}

// acts has an act for each caller of the authorizer. None of them changes anything, so each can be repeated.
func acts(t *testing.T) map[string]act {
	t.Helper()
	set, name, namespace := harness.Unique("set"), harness.Unique("cluster"), harness.NewNamespace(t)
	harness.NewSet(t, set)
	harness.NewManagedCluster(t, name, map[string]string{harness.SetLabel: set})
	dryRun := []string{metav1.DryRunAll}
	patch := func(body string) func(context.Context, versioned.Interface) error {
		return func(ctx context.Context, c versioned.Interface) error {
			_, err := c.ClusterV1().ManagedClusters().Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun})
			return err
		}
	}
	return map[string]act{
		"get": {right: harness.Rule("get", "managedclusters", name), do: func(ctx context.Context, c versioned.Interface) error {
			_, err := c.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
			return err
		}},
		"get a member": {right: harness.Rule("get", "managedclustersets", set), do: func(ctx context.Context, c versioned.Interface) error {
			_, err := c.ViewV1alpha1().ClusterSetMembers().Get(ctx, name+"."+set, metav1.GetOptions{})
			return err
		}},
		"write": {right: harness.Rule("patch", "managedclusters", name), do: patch(`{"metadata":{"annotations":{"a":"b"}}}`)},
		"label": {base: harness.Rule("patch", "managedclusters", name), right: harness.LabelRight(harness.InfoPrefix + "region:*"),
			do: patch(fmt.Sprintf(`{"metadata":{"labels":{%q:"x"}}}`, harness.InfoPrefix+"region"))},
		"accept": {base: harness.Rule("patch", "managedclusters", name), right: harness.Rule("update", "managedclusters/accept", name),
			do: patch(`{"spec":{"hubAcceptsClient":true}}`)},
		"bind": {base: harness.Rule("create", "managedclustersets/bind", set), right: harness.Rule("create", "managedclustersetbindings"), namespace: namespace,
			do: func(ctx context.Context, c versioned.Interface) error {
				_, err := c.ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(ctx, &v1beta2.ManagedClusterSetBinding{
					ObjectMeta: metav1.ObjectMeta{Name: set}, Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
				}, metav1.CreateOptions{DryRun: dryRun})
				return err
			}},
	}
}

// until waits for a result of an act, and returns how long that took.
func until(t *testing.T, what string, act func(context.Context) error, done func(error) bool) time.Duration {
	t.Helper()
	begun := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, harness.Timeout, true, func(ctx context.Context) (bool, error) {
		last = act(ctx)
		return done(last), nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, harness.Timeout, last)
	}
	return time.Since(begun)
}

// TestPermissions_ChangesApplyImmediately verifies that changed rights are effective immediately. Each right is denied first, and each
// decision is cached when it changes: through the front, and by each replica itself, as the front's other requests are routed there.
func TestPermissions_ChangesApplyImmediately(t *testing.T) {
	routes := map[string]func(string, ...string) *rest.Config{
		"through the front": harness.Hub(t).UserConfig,
		"to a replica": func(who string, groups ...string) *rest.Config {
			return harness.Hub(t).HubAPIServerUserConfig(1, who, groups...)
		},
	}
	for what, a := range acts(t) {
		for how, config := range routes {
			t.Run(what+" "+how, func(t *testing.T) {
				who, group := harness.Unique("user"), harness.Unique("group")
				if a.base.Verbs != nil {
					harness.Grant(t, harness.Hub(t), harness.Unique("base"), who, a.base)
				}
				client := harness.Ours(t, config(who, group, "system:authenticated"))
				act := func(ctx context.Context) error { return a.do(ctx, client) }
				allowed := func(err error) bool { return err == nil }
				right := &right{client: harness.Kube(t, harness.Hub(t).AdminConfig()), name: harness.Unique("right"), namespace: a.namespace, rule: a.right,
					subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}}
				var took []time.Duration
				for _, change := range []struct {
					what string
					make func(*testing.T)
					want func(error) bool
				}{
					{"refused", func(*testing.T) {}, apierrors.IsForbidden},
					{"given by a binding", right.give, allowed},
					{"taken from the role", right.empty, apierrors.IsForbidden},
					{"given to the role", right.fill, allowed},
					{"taken by the binding", right.unbind, apierrors.IsForbidden},
				} {
					change.make(t)
					elapsed := until(t, change.what, act, change.want)
					took = append(took, elapsed.Round(time.Millisecond))
					if elapsed > atOnce {
						t.Errorf("%s: counts after %s, want %s at most", change.what, elapsed, atOnce)
					}
					// Now the decision is cached for the longest possible time.
					for range 20 {
						if err := act(t.Context()); !change.want(err) {
							t.Fatalf("%s, and then not: %v", change.what, err)
						}
					}
				}
				t.Logf("refused, given, taken, given, taken: counts after %v", took)
			})
		}
	}
}

// right is a right that can be granted and revoked in several ways.
type right struct {
	client          kubernetes.Interface
	name, namespace string
	rule            rbacv1.PolicyRule
	subject         rbacv1.Subject
}

func (r *right) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: r.name} }

func (r *right) give(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = r.client.RbacV1().ClusterRoleBindings().Delete(ctx, r.name, metav1.DeleteOptions{})
		_ = r.client.RbacV1().ClusterRoles().Delete(ctx, r.name, metav1.DeleteOptions{})
	})
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name}
	if r.namespace == "" {
		harness.Must(r.client.RbacV1().ClusterRoles().Create(t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: r.meta(), Rules: []rbacv1.PolicyRule{r.rule}}, metav1.CreateOptions{}))(t)
		harness.Must(r.client.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: r.meta(), RoleRef: ref, Subjects: []rbacv1.Subject{r.subject}}, metav1.CreateOptions{}))(t)
		return
	}
	ref.Kind = "Role"
	harness.Must(r.client.RbacV1().Roles(r.namespace).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: r.meta(), Rules: []rbacv1.PolicyRule{r.rule}}, metav1.CreateOptions{}))(t)
	harness.Must(r.client.RbacV1().RoleBindings(r.namespace).Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: r.meta(), RoleRef: ref, Subjects: []rbacv1.Subject{r.subject}}, metav1.CreateOptions{}))(t)
}

func (r *right) empty(t *testing.T) { r.setRules(t) }

func (r *right) fill(t *testing.T) { r.setRules(t, r.rule) }

func (r *right) setRules(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	if r.namespace == "" {
		harness.Must(r.client.RbacV1().ClusterRoles().Update(t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: r.meta(), Rules: rules}, metav1.UpdateOptions{}))(t)
		return
	}
	harness.Must(r.client.RbacV1().Roles(r.namespace).Update(t.Context(), &rbacv1.Role{ObjectMeta: r.meta(), Rules: rules}, metav1.UpdateOptions{}))(t)
}

func (r *right) unbind(t *testing.T) {
	t.Helper()
	var err error
	if r.namespace == "" {
		err = r.client.RbacV1().ClusterRoleBindings().Delete(t.Context(), r.name, metav1.DeleteOptions{})
	} else {
		err = r.client.RbacV1().RoleBindings(r.namespace).Delete(t.Context(), r.name, metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
