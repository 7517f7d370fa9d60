// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const visibleSets = "managedclustersets.clusterview.open-cluster-management.io"

// TestVisibleSets_OfUser verifies what consoles of upstream's vendor read: a user without the right to list sets lists those that the user
// may get, and an informer follows the rights.
func TestVisibleSets_OfUser(t *testing.T) {
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

	informer := newInformer(t, user, "v1alpha1", "managedclustersets")
	informer.holds(mine)
	harness.Grant(t, harness.Hub(t), user+"-later", user, harness.Rule("get", "managedclustersets", later))
	informer.holds(mine, later)
	rbac := harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1()
	if err := rbac.ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	informer.holds(later)
	harness.DeleteSet(t, later)
	informer.holds()
}

// userInformer is an informer of clusterview.open-cluster-management.io with the rights of a user.
type userInformer struct {
	t     *testing.T
	store cache.Store
}

func newInformer(t *testing.T, user, version, resource string) userInformer {
	t.Helper()
	config := rest.CopyConfig(harness.Hub(t).AdminConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(harness.Must(dynamic.NewForConfig(config))(t), 0)
	informer := factory.ForResource(schema.GroupVersionResource{
		Group: "clusterview.open-cluster-management.io", Version: version, Resource: resource,
	}).Informer()
	factory.Start(t.Context().Done())
	return userInformer{t, informer.GetStore()}
}

// holds waits until the informer has exactly these objects.
func (i userInformer) holds(want ...string) {
	i.t.Helper()
	harness.Eventually(i.t, "the informer holds "+strings.Join(want, ", "), func(context.Context) (bool, error) {
		keys := i.store.ListKeys()
		slices.Sort(keys)
		return harness.Holds(slices.Equal(keys, slices.Sorted(slices.Values(want))), keys)
	})
}
