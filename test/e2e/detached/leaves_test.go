// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_Leaves: a Klusterlet that is deleted leaves nothing, but what its works have brought.
func TestDetached_Leaves(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	current = nil
	j.leaves()
}

// leaves takes the Klusterlet away, and the cluster from its hub.
func (j *joined) leaves() {
	j.Helper()
	t, w := j.T, j.world
	harness.MustKubectlOf(t, w.management.Hub, "", "delete", "klusterlet", j.name, "--timeout=2m")
	brought := "v1 configmaps default/" + j.name
	left(t, "the managed cluster", w.managed.AdminConfig(), append(j.before.managed, brought))
	if got, err := kubectl(t, w.managed.Hub, "get", "configmap", j.name, "-o", "jsonpath={.data.text}{.metadata.ownerReferences}"); err != nil || got != "hello" {
		t.Errorf("what the work has brought is %q, %v", got, err)
	}
	harness.MustKubectlOf(t, w.managed.Hub, "", "delete", "configmap", j.name)
	left(t, "the management cluster", w.management.AdminConfig(), j.before.management)

	// The hub was not told. Its admin removes the cluster; the work first, which would hold the namespace of the cluster for a while.
	harness.MustKubectlOf(t, w.hub, "", "delete", "manifestwork", "hello", "-n", j.name, "--wait=false")
	harness.MustKubectlOf(t, w.hub, "", "patch", "manifestwork", "hello", "-n", j.name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	harness.MustKubectlOf(t, w.hub, "", "delete", "managedcluster", j.name, "--wait=false")
	left(t, "the hub", w.hub.AdminConfig(), j.before.hub)
}

// left waits until a cluster has what it had before.
func left(t *testing.T, where string, config *rest.Config, before []string) {
	t.Helper()
	eventually(t, where+" has nothing more, and nothing less", func() error {
		now := inventory(t, config)
		more := slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(before, name) })
		less := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(now, name) })
		if len(more)+len(less) > 0 {
			return fmt.Errorf("more: %v, less: %v", more, less)
		}
		return nil
	})
}

// passing are the kinds whose objects come and go by themselves.
var passing = []string{"events", "leases", "endpoints", "endpointslices", "certificatesigningrequests", "apiservices", "componentstatuses",
	"clustertrustbundles"}

// inventory is all that a cluster has, "GROUP/VERSION RESOURCE NAMESPACE/NAME".
func inventory(t *testing.T, config *rest.Config) (names []string) {
	t.Helper()
	lists := harness.Must(discovery.ServerPreferredResources(harness.Kube(t, config).Discovery()))(t)
	client := harness.Must(dynamic.NewForConfig(config))(t)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range list.APIResources {
			if slices.Contains(passing, resource.Name) {
				continue
			}
			gv := harness.Must(schema.ParseGroupVersion(list.GroupVersion))(t)
			objects, err := client.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // it has gone meanwhile
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects.Items {
				// kube-controller-manager makes them in its own time.
				if resource.Name == "serviceaccounts" && (o.GetName() == "default" || o.GetNamespace() == metav1.NamespaceSystem) ||
					resource.Name == "configmaps" && (o.GetName() == "kube-root-ca.crt" || o.GetNamespace() == metav1.NamespaceSystem) {
					continue
				}
				names = append(names, list.GroupVersion+" "+resource.Name+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
			}
		}
	}
	return names
}
