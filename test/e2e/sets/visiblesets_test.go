// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const visibleSets = "managedclustersets.clusterview.open-cluster-management.io"

// What consoles of upstream's vendor read: a user without the right to list sets lists those that the user may get, and an
// informer follows the rights.
func TestVisibleSets_AreThoseOfTheUser(t *testing.T) {
	mine, later, other := harness.Unique("set"), harness.Unique("set"), harness.Unique("set")
	for _, set := range []string{mine, later, other} {
		harness.NewSet(t, set)
	}
	user := harness.User(t, harness.Rule("get", "managedclustersets", mine))
	if _, err := harness.Kubectl(t, "", "get", "managedclustersets", "--as", user); err == nil {
		t.Error("the user may list all sets, so nothing is shown here")
	}
	names := func() string {
		return strings.TrimSpace(harness.MustKubectl(t, "", "get", visibleSets, "--as", user, "-o", "name"))
	}
	if got, want := names(), "managedclusterset.clusterview.open-cluster-management.io/"+mine; got != want {
		t.Errorf("the user sees %q, want %q", got, want)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "get", visibleSets, "--as", user), mine)
	harness.Contains(t, harness.MustKubectl(t, "", "get", visibleSets, "--as", user, "-o", "yaml"),
		"apiVersion: clusterview.open-cluster-management.io/v1alpha1", "kind: ManagedClusterSet")
	out, err := harness.Kubectl(t, "", "get", visibleSets, other, "--as", user)
	if err == nil || !strings.Contains(out, "resourceNames") {
		t.Errorf("get of another set: %s, want a refusal that names the rule", out)
	}
	for _, verb := range [][]string{{"delete", visibleSets, mine}, {"label", visibleSets, mine, "a=b"}} {
		if out, err := harness.Kubectl(t, "", verb...); err == nil {
			t.Errorf("%v of an admin: %s, and the resource is read only", verb, out)
		}
	}

	config := rest.CopyConfig(harness.Hub(t).AdminConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(harness.Must(dynamic.NewForConfig(config))(t), 0)
	informer := factory.ForResource(schema.GroupVersionResource{
		Group: "clusterview.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclustersets",
	}).Informer()
	factory.Start(ctx.Done())
	holds := func(want ...string) {
		t.Helper()
		harness.Eventually(t, "the informer holds "+strings.Join(want, ", "), func(context.Context) (bool, error) {
			keys := informer.GetStore().ListKeys()
			ok := len(keys) == len(want)
			for _, name := range want {
				_, exists, _ := informer.GetStore().GetByKey(name)
				ok = ok && exists
			}
			return harness.Holds(ok, keys)
		})
	}
	holds(mine)
	harness.Grant(t, harness.Hub(t), user+"-later", user, harness.Rule("get", "managedclustersets", later))
	holds(mine, later)
	rbac := harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1()
	if err := rbac.ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(later)
	harness.DeleteSet(t, later)
	holds()
}
