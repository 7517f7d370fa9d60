// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// storageVersion returns the version in which a resource is stored in etcd.
func storageVersion(resource schema.GroupResource) (schema.GroupVersion, bool) {
	for _, kind := range kinds {
		if kind.GroupResource() == resource {
			return kind.GroupVersions()[0], true
		}
	}
	return schema.GroupVersion{}, false
}

// EncodedSize returns the size in bytes of an object of a resource in etcd, before it is encrypted.
func EncodedSize(resource schema.GroupResource, object runtime.Object) (int, error) {
	version, ok := storageVersion(resource)
	if !ok {
		return 0, fmt.Errorf("%s are not stored", resource)
	}
	data, err := runtime.Encode(Codecs.LegacyCodec(version), object)
	return len(data), err
}

// fleetCodec encodes visibility revisions, and decodes everything that is stored next to them.
var fleetCodec = Codecs.LegacyCodec(visibility.SchemeGroupVersion)

// restOptions returns where and how each resource is stored.
type restOptions struct {
	generic.RESTOptionsGetter
	connect backend.Connect
}

func (g restOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	if version, ok := storageVersion(resource); ok {
		config := *options.StorageConfig
		config.Codec = Codecs.LegacyCodec(version)
		config.EncodeVersioner = version
		options.StorageConfig = &config
	}
	switch resource {
	case cluster.Resource("managedclusters"), cluster.Resource("managedclustersets"):
		// Members are computed from all keys with this prefix.
		options.ResourcePrefix = strings.TrimPrefix(position.FleetPrefix, "/") + "/" + resource.Resource
	}
	if resource == cluster.Resource("managedclustersets") {
		options.Decorator = managedclusterset.Decorator(g.connect)
	} else {
		options.Decorator = backend.Options{Connect: g.connect}.Decorator()
	}
	return options, nil
}
