// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles hub-apiserver: the scheme, the storage of its API groups, and the server.
package apiserver

import (
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterviewinstall "github.com/clusterhub/clusterhub/pkg/apis/clusterview/install"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	edgeinstall "github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	openmcpinstall "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	viewinstall "github.com/clusterhub/clusterhub/pkg/apis/view/install"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	workinstall "github.com/clusterhub/clusterhub/pkg/apis/work/install"
)

var (
	// Scheme has every kind that is served or stored.
	Scheme = runtime.NewScheme()
	// Codecs encode and decode them.
	Codecs = serializer.NewCodecFactory(Scheme)
)

func init() {
	clusterinstall.Install(Scheme)
	clusterviewinstall.Install(Scheme)
	viewinstall.Install(Scheme)
	openmcpinstall.Install(Scheme)
	workinstall.Install(Scheme)
	edgeinstall.Install(Scheme)
	utilruntime.Must(visibility.AddToScheme(Scheme))

	// The generic server needs these of the unnamed group: options, and the kinds of discovery and errors.
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
	Scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
}

// negotiated serves our kinds in the formats that they support: a client that prefers protobuf, which they do not support, gets its second choice
// rather than an error.
type negotiated struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	var kept []runtime.SerializerInfo
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType != runtime.ContentTypeProtobuf {
			kept = append(kept, info)
		}
	}
	return kept
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s negotiated) EncoderForVersion(serializer runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	encoder := s.NegotiatedSerializer.EncoderForVersion(versionDiscovery{itemKinds{serializer}}, gv)
	switch gv {
	case clusterv1.SchemeGroupVersion, clusterviewv1.SchemeGroupVersion, viewv1alpha1.SchemeGroupVersion:
	default:
		return encoder
	}
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON && info.Serializer == serializer {
			return listEncoder{encoder, gv}
		}
	}
	return encoder
}

// itemKinds sets the kind of each item of a list, as the API servers of custom resources do: upstream's clients print the items of a list as separate
// objects. Its lists are in a served version, and were created for one response.
type itemKinds struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (e itemKinds) Encode(obj runtime.Object, w io.Writer) error {
	list := obj.GetObjectKind().GroupVersionKind()
	kind, ok := strings.CutSuffix(list.Kind, "List")
	if !ok || !meta.IsListType(obj) {
		return e.Encoder.Encode(obj, w)
	}
	err := meta.EachListItem(obj, func(item runtime.Object) error {
		item.GetObjectKind().SetGroupVersionKind(list.GroupVersion().WithKind(kind))
		return nil
	})
	if err != nil {
		return err
	}
	return e.Encoder.Encode(obj, w)
}
