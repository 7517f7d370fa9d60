// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// ShownByMembers returns a codec that decodes only the part of a stored cluster that its members show.
func ShownByMembers(all runtime.Codec) runtime.Codec { return fleetCodec{all} }

// fleetCodec decodes only the part of a stored cluster that its members show. When a fleet is read at a start, and for every write, that is a small
// part, and the cache of clusters decodes the same data in full.
type fleetCodec struct{ runtime.Codec }

// storedCluster is the prefix of a stored cluster: the store writes kind and version first.
var storedCluster = []byte(`{"kind":"ManagedCluster","apiVersion":"` + v1.SchemeGroupVersion.String() + `",`)

// shownCluster is the part of a stored cluster from which members are computed: see membership.Index.SetCluster.
type shownCluster struct {
	Metadata struct {
		Name              string            `json:"name"`
		UID               types.UID         `json:"uid"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		HubAcceptsClient bool `json:"hubAcceptsClient"`
		Taints           []struct {
			Key    string              `json:"key"`
			Value  string              `json:"value"`
			Effect cluster.TaintEffect `json:"effect"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string                 `json:"type"`
			Status metav1.ConditionStatus `json:"status"`
		} `json:"conditions"`
		Version struct {
			Kubernetes string `json:"kubernetes"`
		} `json:"version"`
	} `json:"status"`
}

// Decode implements runtime.Decoder.
func (c fleetCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if !bytes.HasPrefix(data, storedCluster) {
		return c.Codec.Decode(data, defaults, into)
	}
	var shown shownCluster
	if err := json.Unmarshal(data, &shown); err != nil {
		return nil, nil, err
	}
	obj, ok := into.(*cluster.ManagedCluster)
	if !ok {
		obj = &cluster.ManagedCluster{}
	}
	m := shown.Metadata
	obj.Name, obj.UID, obj.CreationTimestamp, obj.Labels = m.Name, m.UID, m.CreationTimestamp, m.Labels
	obj.Spec.HubAcceptsClient = shown.Spec.HubAcceptsClient
	for _, t := range shown.Spec.Taints {
		obj.Spec.Taints = append(obj.Spec.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	for _, condition := range shown.Status.Conditions {
		obj.Status.Conditions = append(obj.Status.Conditions, metav1.Condition{Type: condition.Type, Status: condition.Status})
	}
	obj.Status.Version.Kubernetes = shown.Status.Version.Kubernetes
	kind := v1.SchemeGroupVersion.WithKind("ManagedCluster")
	return obj, &kind, nil
}

// WithoutClusters returns a codec that decodes nothing of a stored cluster.
func WithoutClusters(all runtime.Codec) runtime.Codec { return setCodec{all} }

type setCodec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c setCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if !bytes.HasPrefix(data, storedCluster) {
		return c.Codec.Decode(data, defaults, into)
	}
	kind := v1.SchemeGroupVersion.WithKind("ManagedCluster")
	return &cluster.ManagedCluster{}, &kind, nil
}
