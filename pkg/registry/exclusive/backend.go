// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive

import (
	"path"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/registry/backend"
)

// Decorator creates the cached storage of a resource whose objects hold claims. directory is the directory of the claims within the storage's prefix.
func Decorator(connect backend.Connect, directory string, claim ClaimFunc, conflict ConflictFunc) generic.StorageDecorator {
	return backend.Options{
		Connect: connect,
		AdaptClient: func(config *storagebackend.ConfigForResource, etcd *kubernetes.Client) {
			etcd.Kubernetes = &client{
				Interface: etcd.Kubernetes,
				kv:        etcd.KV,
				prefix:    path.Join("/", config.Prefix, directory),
			}
		},
		AdaptStorage: func(s storage.Interface) storage.Interface {
			return &claiming{Interface: s, claim: claim, conflict: conflict}
		},
	}.Decorator()
}
