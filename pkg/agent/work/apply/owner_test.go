// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestDelete: a record alone does not justify a deletion, since any user who may write records may have written it.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	a, b := w.work("a"), w.work("b")
	target := w.configMap(UpdateStrategy{}, "{}").Target
	foreign := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
	for name, c := range map[string]struct {
		owners      []metav1.OwnerReference
		uid         types.UID // "" stands for the UID of the object
		gone, stays bool
		left        int
	}{
		"ours":                                {owners: []metav1.OwnerReference{a.Owner.Reference()}, gone: true},
		"ours, and of another kind":           {owners: append(foreign, a.Owner.Reference()), gone: true},
		"nobody's":                            {gone: true, stays: true},
		"another work's":                      {owners: []metav1.OwnerReference{b.Owner.Reference()}, gone: true, stays: true, left: 1},
		"ours and another work's":             {owners: []metav1.OwnerReference{a.Owner.Reference(), b.Owner.Reference()}, gone: true, stays: true, left: 1},
		"a new one in the place of ours":      {uid: "former", gone: true, stays: true},
		"a new one with the reference":        {uid: "former", owners: []metav1.OwnerReference{a.Owner.Reference()}, gone: true, stays: true},
		"a reference to a namesake of a work": {owners: []metav1.OwnerReference{{APIVersion: WorkGroup + "/v1", Kind: AppliedKind, Name: a.Owner.Name, UID: "former"}}, gone: true, stays: true, left: 1},
		"a reference of another group":        {owners: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: AppliedKind, Name: a.Owner.Name, UID: a.Owner.UID}}, gone: true, stays: true, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, client: w.client, namespace: w.namespace}
			object := w.configMap(UpdateStrategy{}, "{}").Object
			object.SetNamespace(w.namespace)
			object.SetOwnerReferences(c.owners)
			// The garbage collector must not delete objects with an owner that does not exist before this test does.
			object.SetFinalizers([]string{"example.com/hold"})
			made, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			uid := made.GetUID()
			if c.uid != "" {
				uid = c.uid
			}
			gone, err := a.Owner.Delete(t.Context(), w.client, target, uid)
			if err != nil {
				t.Fatal(err)
			}
			left := w.get(target)
			if c.stays {
				if !gone || left.GetDeletionTimestamp() != nil && c.owners == nil || len(left.GetOwnerReferences()) != c.left {
					t.Errorf("gone is %v, and it is %v", gone, left.Object["metadata"])
				}
			} else if gone || left.GetDeletionTimestamp() == nil {
				t.Error("it is not deleted, or said to be gone before it is")
			}
			w.change(target, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			if !c.stays {
				if gone, err := a.Owner.Delete(t.Context(), w.client, target, uid); !gone || err != nil {
					t.Errorf("it is not gone: %v", err)
				}
			}
			_ = w.client.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "cm", metav1.DeleteOptions{})
		})
	}
}

// TestOwner_WithoutUID: an owner without a UID owns nothing, so that no mistake deletes everything.
func TestOwner_WithoutUID(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetOwnerReferences([]metav1.OwnerReference{Owner{Name: "a"}.Reference()})
	if (Owner{Name: "a"}).Owns(object) {
		t.Error("an owner without a UID owns something")
	}
}

// TestOwner_ConfigMapsDoNotBlockCluster: a user who may write ConfigMaps in a namespace must not block an agent of the whole cluster from
// changing its objects there. Among agents of namespaces, ConfigMaps are rivals.
func TestOwner_ConfigMapsDoNotBlockCluster(t *testing.T) {
	record := Owner{Name: RecordPrefix + "x", UID: "r", Namespace: "n"}
	applied := Owner{Name: "x", UID: "a"}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "o"}
	for name, c := range map[string]struct {
		of   Owner
		ref  metav1.OwnerReference
		want bool
	}{
		"the cluster's, of a record":    {applied, record.Reference(), false},
		"the cluster's, of the cluster": {applied, applied.Reference(), true},
		"a record's, of a record":       {record, record.Reference(), true},
		"a record's, of the cluster":    {record, applied.Reference(), true},
		"a record's, of a ConfigMap":    {record, other, false},
	} {
		if got := c.of.isWork(c.ref); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace("n")
	object.SetOwnerReferences([]metav1.OwnerReference{record.Reference()})
	if !record.Owns(object) || applied.Owns(object) || (Owner{Name: record.Name, UID: "r"}).Owns(object) {
		t.Error("it belongs to another one")
	}
	object.SetNamespace("other")
	if record.Owns(object) {
		t.Error("it belongs to a record of another namespace")
	}
}
