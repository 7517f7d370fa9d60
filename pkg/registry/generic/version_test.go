// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// resource is a stored resource, with an object named "dev" that can be created in it.
type resource struct {
	*generic.Storage
	subresources []rest.Getter
	status       rest.Updater
	object       runtime.Object
	ctx          context.Context
}

func resources(t *testing.T) map[string]resource {
	t.Helper()
	etcd := registrytest.NewEtcd(t)
	made := func(kind generic.Definition, object runtime.Object) resource {
		r := registrytest.NewStorage(t, etcd, kind, nil)
		var subresources []rest.Getter
		for _, s := range r.Subresources {
			subresources = append(subresources, s)
		}
		return resource{Storage: r.Storage, subresources: subresources, status: r.Subresources["status"], object: object, ctx: registrytest.Context(r)}
	}
	meta := metav1.ObjectMeta{Name: "dev"}
	return map[string]resource{
		"managedclusters": made(managedcluster.Kind, &cluster.ManagedCluster{ObjectMeta: meta}),
		"managedclustersets": made(managedclusterset.Kind, &cluster.ManagedClusterSet{
			ObjectMeta: meta, Spec: cluster.ManagedClusterSetSpec{
				ClusterSelector: cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel},
			}}),
		"managedclustersetbindings": made(managedclustersetbinding.Kind, &cluster.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace, Name: "dev"},
			Spec:       cluster.ManagedClusterSetBindingSpec{ClusterSet: "dev"},
		}),
	}
}

func expectBadRequest(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want a 400 that says %q", what, err, says)
	}
}

// TestCreate_RejectsResourceVersion: as with kubectl create of the output of kubectl get.
func TestCreate_RejectsResourceVersion(t *testing.T) {
	const says = "resourceVersion should not be set on objects to be created: remove metadata.resourceVersion"
	for name, r := range resources(t) {
		for _, version := range []string{"7", "x"} {
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				exported := r.object.DeepCopyObject()
				registrytest.Meta(exported).SetResourceVersion(version)
				_, err := r.Create(r.ctx, exported, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
				expectBadRequest(t, fmt.Sprintf("%s at %s, dry run %v", name, version, dryRun), err, says)
			}
		}
		if _, err := r.Get(r.ctx, "dev", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v for what was refused", name, err)
		}
		// As in Kubernetes, 0 means no version.
		zero := r.object.DeepCopyObject()
		registrytest.Meta(zero).SetResourceVersion("0")
		registrytest.Create(t, r.ctx, r, zero)
	}
}

func TestReads_RejectInvalidResourceVersion(t *testing.T) {
	for name, r := range resources(t) {
		created := registrytest.Create(t, r.ctx, r, r.object)
		for _, version := range []string{"x", "-1", "1.5", "99999999999999999999"} {
			says := fmt.Sprintf("resourceVersion: %q", version)
			for i, getter := range append(r.subresources, r) {
				_, err := getter.Get(r.ctx, "dev", &metav1.GetOptions{ResourceVersion: version})
				expectBadRequest(t, fmt.Sprintf("%s %d get at %s", name, i, version), err, says)
			}
			_, err := r.Watch(r.ctx, &internalversion.ListOptions{ResourceVersion: version})
			expectBadRequest(t, name+" watch at "+version, err, says)
			_, err = r.List(r.ctx, &internalversion.ListOptions{ResourceVersion: version})
			expectBadRequest(t, name+" list at "+version, err, says)
		}
		for _, version := range []string{"", "0", registrytest.Meta(created).GetResourceVersion()} {
			for i, getter := range append(r.subresources, r) {
				if _, err := getter.Get(r.ctx, "dev", &metav1.GetOptions{ResourceVersion: version}); err != nil {
					t.Errorf("%s %d get at %q: %v", name, i, version, err)
				}
			}
			w, err := r.Watch(r.ctx, &internalversion.ListOptions{ResourceVersion: version})
			if err != nil {
				t.Errorf("%s watch at %q: %v", name, version, err)
				continue
			}
			w.Stop()
			if _, err := r.List(r.ctx, &internalversion.ListOptions{ResourceVersion: version}); err != nil {
				t.Errorf("%s list at %q: %v", name, version, err)
			}
		}
	}
}

func TestUpdate_RejectsInvalidResourceVersion(t *testing.T) {
	for name, r := range resources(t) {
		changed := registrytest.Create(t, r.ctx, r, r.object).DeepCopyObject()
		registrytest.Meta(changed).SetResourceVersion("x")
		updaters := []rest.Updater{r}
		for _, s := range r.subresources {
			updaters = append(updaters, s.(rest.Updater))
		}
		for i, u := range updaters {
			_, err := registrytest.Update(r.ctx, u, changed)
			expectBadRequest(t, fmt.Sprintf("%s %d", name, i), err, `metadata.resourceVersion: "x"`)
		}
	}
}
