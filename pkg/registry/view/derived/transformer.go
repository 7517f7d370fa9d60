// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// fleetTransformer decrypts what is stored under FleetPrefix. An encryption configuration names resources, and clusters and sets may be encrypted in
// different ways, or one of them only. Visibility revisions are stored like clusters.
type fleetTransformer struct {
	clusters, sets value.Transformer
	// setPrefix is the prefix of the keys of sets in etcd.
	setPrefix string
}

var _ value.Transformer = fleetTransformer{}

// TransformFromStorage implements value.Transformer.
func (t fleetTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	return t.of(dataCtx).TransformFromStorage(ctx, data, dataCtx)
}

// TransformToStorage implements value.Transformer.
func (t fleetTransformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return t.of(dataCtx).TransformToStorage(ctx, data, dataCtx)
}

// of selects a transformer by the key in etcd, which the store passes as the context of a value.
func (t fleetTransformer) of(dataCtx value.Context) value.Transformer {
	transformer := t.clusters
	if strings.HasPrefix(string(dataCtx.AuthenticatedData()), t.setPrefix) {
		transformer = t.sets
	}
	if transformer == nil { // encryption is not configured at all
		return identity.NewEncryptCheckTransformer()
	}
	return transformer
}
