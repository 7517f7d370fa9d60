// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/exclusive"
)

// Decorator creates the storage of managedclustersets, in which no two sets claim the same label.
func Decorator(connect backend.Connect) generic.StorageDecorator {
	return exclusive.Decorator(connect, "exclusive-labels", claim, conflict)
}

// claim returns the label by which an exclusive set selects clusters. A value has no slash, so the path identifies one pair.
func claim(obj runtime.Object) string {
	set, ok := obj.(*cluster.ManagedClusterSet)
	if !ok {
		return ""
	}
	key, value, ok := selector.ExclusivePair(set)
	if !ok {
		return ""
	}
	return key + "/" + value
}

func conflict(name string, err *exclusive.ClaimedError) error {
	slash := strings.LastIndexByte(err.Claim, '/')
	return apierrors.NewConflict(cluster.Resource("managedclustersets"), name, fmt.Errorf(
		"the label %s=%s is already claimed by the ManagedClusterSet %q: exclusive sets cannot share a label, choose another one or a LabelSelector",
		err.Claim[:slash], err.Claim[slash+1:], err.Holder))
}

// withDryRun makes dry runs check claims as well.
func withDryRun(store *genericregistry.Store) {
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return checkDryRun(ctx, store, obj, options.DryRun)
	}
	store.BeginUpdate = func(ctx context.Context, obj, _ runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return checkDryRun(ctx, store, obj, options.DryRun)
	}
}

// checkDryRun returns for a dry run the error that the claim of the real request would return, which writes it.
func checkDryRun(ctx context.Context, store *genericregistry.Store, obj runtime.Object, dryRun []string) (genericregistry.FinishFunc, error) {
	wanted := claim(obj)
	if !dryrun.IsDryRun(dryRun) || wanted == "" {
		return finished, nil
	}
	list, err := store.ListPredicate(ctx, storage.Everything, &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	name := obj.(*cluster.ManagedClusterSet).Name
	for _, other := range list.(*cluster.ManagedClusterSetList).Items {
		if other.Name != name && claim(&other) == wanted {
			return nil, conflict(name, &exclusive.ClaimedError{Claim: wanted, Holder: other.Name})
		}
	}
	return finished, nil
}

func finished(context.Context, bool) {}
