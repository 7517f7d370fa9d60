// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// FuzzRequestOf: an object in a cluster is attributed to its request and Cluster, and to no other.
func FuzzRequestOf(f *testing.F) {
	f.Add("teams", "a", "1", "c1", "teams", "b")
	f.Add("a", "b/c", "1", "c1", "a", "b")
	f.Add("", "a", "1", "c1", "a", "")
	f.Add("teams", strings.Repeat("a", 200), "1", "c1", "teams", strings.Repeat("a", 200)+"b")
	f.Fuzz(func(t *testing.T, namespace, name, uid, cluster, otherNamespace, otherName string) {
		own := Identity{Name: "p", Environment: "e"}
		made := func(namespace, name string) *v1alpha1.AccessRequest {
			return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
		}
		ar, of := made(namespace, name), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(cluster)}}
		object := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Annotations: own.Origin(ar, of)}}
		valid := func(namespace, name string) bool {
			return len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) == 0
		}
		found := own.RequestOf(object, of)
		if found != nil && (found.Namespace+"/"+found.Name != namespace+"/"+name || string(found.UID) != uid) {
			t.Errorf("%s/%s became %s/%s", namespace, name, found.Namespace, found.Name)
		}
		if valid(namespace, name) && uid != "" && (found == nil || found.Namespace != namespace || found.Name != name) {
			t.Errorf("%s/%s became %v", namespace, name, found)
		}
		elsewhere := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(cluster + "x")}}
		if found := own.RequestOf(object, elsewhere); found != nil {
			t.Errorf("in another Cluster it is that of %s/%s", found.Namespace, found.Name)
		}
		if !valid(namespace, name) || !valid(otherNamespace, otherName) {
			return
		}
		other := made(otherNamespace, otherName)
		same := namespace == otherNamespace && name == otherName
		if (own.Hash(ar) == own.Hash(other)) != same {
			t.Errorf("%s/%s and %s/%s have the hash %s", namespace, name, otherNamespace, otherName, own.Hash(ar))
		}
		labels, others := own.AccessLabels(ar), own.AccessLabels(other)
		for key, value := range labels {
			if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
				t.Errorf("%s=%s is no label", key, value)
			}
		}
		if equal := labels[own.NameLabel()] == others[own.NameLabel()]; equal != (name == otherName) {
			t.Errorf("%s and %s are labelled %s", name, otherName, labels[own.NameLabel()])
		}
		if problems := validation.IsDNS1123Subdomain(SecretName(name)); len(problems) > 0 || len(SecretName(name)) > validation.DNS1123LabelMaxLength {
			t.Errorf("%q is no name of a Secret: %v", SecretName(name), problems)
		}
	})
}
