// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/await"
)

// passing are resources whose objects are created and deleted by others, or that are not stored.
var passing = []string{"events", "leases", "componentstatuses"}

// Objects returns all objects of a cluster, as "RESOURCE.GROUP NAMESPACE/NAME".
func Objects(t testing.TB, config *rest.Config) map[string]bool {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	lists, err := discovery.ServerPreferredResources(kube(t, config).Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // a kind may be in deletion
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(passing, resource.Name) {
				continue
			}
			gvr := gv.WithResource(resource.Name)
			objects, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", gvr, err)
			}
			for _, o := range objects.Items {
				all[strings.ReplaceAll(fmt.Sprintf("%s %s/%s", gvr.GroupResource(), o.Namespace, o.Name), " /", " ")] = true
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("the cluster has %d objects", len(all))
	}
	return all
}

// NothingSince verifies that a cluster has no object that it did not have before, once deletions are complete.
func NothingSince(t testing.TB, config *rest.Config, before map[string]bool) {
	t.Helper()
	var left []string
	if await.Until(context.WithoutCancel(t.Context()), await.Limit, func(context.Context) (bool, error) {
		left = nil
		for name := range Objects(t, config) {
			if !before[name] {
				left = append(left, name)
			}
		}
		return len(left) == 0, nil
	}) != nil {
		slices.Sort(left)
		t.Errorf("there is %q, which was not there before", left)
	}
}
