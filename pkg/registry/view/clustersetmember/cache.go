// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"

	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

// reader is what members are read from.
type reader interface {
	GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error
	Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error)
	Ready() bool
}

// errNoProgress says why nothing can be read at the latest version.
var errNoProgress = errors.New("etcd has not said yet that it answers progress requests, by which members are read at " +
	"their latest version: it does from 3.4.31 and 3.5.13 on")

// memberCache is all that there is of members. Stored resources have cacher.CacheDelegator, which asks etcd for what the
// cache does not have, and compares the two from time to time: for members there is nobody else to ask.
type memberCache struct{ *cacher.Cacher }

// GetList lists from the cache, at a version of its history too.
func (c memberCache) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if _, _, err := storage.ValidateListOptions(position.Root, versioner, opts); err != nil {
		return err
	}
	answer, err := delegator.ShouldDelegateList(opts, c)
	if err != nil {
		return err
	}
	if answer.ShouldDelegate && answer.ConsistentRead {
		return unavailable(errNoProgress)
	}
	if answer.ShouldDelegate {
		return apierrors.NewResourceExpired("the requested version of the members is no longer kept: list them anew")
	}
	return c.Cacher.GetList(ctx, key, opts, list)
}
