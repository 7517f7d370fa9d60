// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cached returns an object from the cache, not older than a version, "0" for any. It shares everything except its outermost struct with the cache,
// and must not be modified there. If the cache is not ready, Cached returns an error, and does not read from etcd.
func (r *Resource) Cached(ctx context.Context, name, version string) (runtime.Object, error) {
	if err := r.ReadinessCheck(); err != nil {
		return nil, err
	}
	return r.Get(ctx, name, &metav1.GetOptions{ResourceVersion: version})
}
