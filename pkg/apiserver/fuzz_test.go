// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

// FuzzListEncoder verifies that any text is encoded as the generic encoder does.
func FuzzListEncoder(f *testing.F) {
	for _, text := range []string{"a", "", "\"", "\\", "<script>&", "\u2028", "\xff", "\x00\x1f\x7f", "ü\U0001f600", "</"} {
		f.Add(text, `{"f:metadata":{}}`, int64(1))
	}
	f.Add("a", `{"f:metadata": {"a": "<"}}`, int64(-1))
	f.Add("a", "", int64(253402300800))
	f.Fuzz(func(t *testing.T, text, fields string, seconds int64) {
		meta := metav1.ObjectMeta{
			Name: text, Labels: map[string]string{text: text, "a": "b"}, Annotations: map[string]string{text: text},
			Finalizers: []string{text}, Generation: seconds, CreationTimestamp: metav1.Unix(seconds%(1<<33), 0),
		}
		meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: text}}
		if json.Valid([]byte(fields)) {
			meta.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(fields)
		}
		clusters := &cluster.ManagedClusterList{ListMeta: metav1.ListMeta{Continue: text}, Items: []cluster.ManagedCluster{{ObjectMeta: meta}}}
		clusters.Items[0].Spec.Taints = []cluster.Taint{{Key: text, Value: text}}
		clusters.Items[0].Status.Conditions = []metav1.Condition{{Type: text, Message: text, LastTransitionTime: meta.CreationTimestamp}}
		clusters.Items[0].Status.ClusterClaims = []cluster.ManagedClusterClaim{{Name: text, Value: text}}
		sameAsPlain(t, v1.SchemeGroupVersion, clusters)
		members := &view.ClusterSetMemberList{Items: []view.ClusterSetMember{{ObjectMeta: meta}}}
		members.Items[0].Spec = view.ClusterSetMemberSpec{ClusterSet: text, Cluster: text}
		members.Items[0].Status.Taints = []string{text}
		sameAsPlain(t, v1alpha1.SchemeGroupVersion, members)
	})
}
