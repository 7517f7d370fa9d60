// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/registry/exclusive"
)

// Decorator makes the storage of managedclustersets, in which no two sets claim the same label.
func Decorator() generic.StorageDecorator {
	return exclusive.Decorator("exclusive-labels", claim, conflict)
}

// claim is the label that puts a cluster into an exclusive set. A value has no slash, so the path names one pair.
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
	return apierrors.NewConflict(cluster.Resource("managedclustersets"), name, fmt.Errorf(
		"the label %s is already claimed by the ManagedClusterSet %q: exclusive sets cannot share a label, choose another one or a LabelSelector",
		err.Claim, err.Holder))
}
