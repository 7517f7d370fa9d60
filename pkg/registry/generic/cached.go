// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cached is an object as the cache has it, no older than a version, "0" for any. It shares all but its outermost struct with the cache: what
// is behind that must never be changed. A cache that is not ready is an error; etcd is not asked in its place.
func (r *Resource) Cached(ctx context.Context, name, version string) (runtime.Object, error) {
	if err := r.ReadinessCheck(); err != nil {
		return nil, err
	}
	return r.Get(ctx, name, &metav1.GetOptions{ResourceVersion: version})
}
