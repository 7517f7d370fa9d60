// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// WorkGroup is the group of works, and AppliedKind the kind that objects belong to.
const (
	WorkGroup   = "work.open-cluster-management.io"
	AppliedKind = "AppliedManifestWork"
	// RecordPrefix begins the names of the ConfigMaps that objects belong to whose agent has no cluster-scoped objects.
	RecordPrefix = "work-record-"
)

var (
	// AppliedWorks is where the records are of an agent of a whole cluster.
	AppliedWorks = schema.GroupVersionResource{Group: WorkGroup, Version: "v1", Resource: "appliedmanifestworks"}
	// ConfigMaps is where they are of an agent that has no cluster-scoped objects.
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// Owner is what the objects of a work belong to: an AppliedManifestWork, or a ConfigMap of their namespace. One of the same name that was
// there before is another owner.
type Owner struct {
	Name string
	UID  types.UID
	// Namespace is that of a ConfigMap; it is empty for an AppliedManifestWork.
	Namespace string
}

// Target is the owner itself.
func (o Owner) Target() Target {
	if o.Namespace != "" {
		return Target{GroupVersionResource: ConfigMaps, Namespace: o.Namespace, Name: o.Name}
	}
	return Target{GroupVersionResource: AppliedWorks, Name: o.Name}
}

// Reference is that of an owner. It is no controller: several works can have one object.
func (o Owner) Reference() metav1.OwnerReference {
	if o.Namespace != "" {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}
	}
	return metav1.OwnerReference{APIVersion: WorkGroup + "/v1", Kind: AppliedKind, Name: o.Name, UID: o.UID}
}

// Owns is whether an object belongs to this owner. Without a UID nothing does.
func (o Owner) Owns(object *unstructured.Unstructured) bool {
	return o.UID != "" && slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == o.UID && (o.Namespace == "" && isAppliedWork(ref) ||
			o.Namespace != "" && o.Namespace == object.GetNamespace() && isRecord(ref))
	})
}

// in is what owner references become with that of this owner, or without it.
func (o Owner) in(refs []metav1.OwnerReference, owned bool) []metav1.OwnerReference {
	ours := func(ref metav1.OwnerReference) bool { return ref.UID == o.UID }
	if !owned {
		return slices.DeleteFunc(slices.Clone(refs), ours)
	}
	if slices.ContainsFunc(refs, ours) {
		return refs
	}
	return append(slices.Clone(refs), o.Reference())
}

func isAppliedWork(ref metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && version.Group == WorkGroup && ref.Kind == AppliedKind
}

// isRecord says whether a reference is to what looks like a record in a ConfigMap.
func isRecord(ref metav1.OwnerReference) bool {
	return ref.APIVersion == "v1" && ref.Kind == "ConfigMap" && strings.HasPrefix(ref.Name, RecordPrefix)
}

// isWork says whether a reference may stand for a work that this owner's has to respect. Who may write ConfigMaps in a namespace must not
// prevent an agent of the whole cluster from changing what it has applied there.
func (o Owner) isWork(ref metav1.OwnerReference) bool {
	return isAppliedWork(ref) || o.Namespace != "" && isRecord(ref)
}

// setOwners writes the owner references of an object, if it is still as it was read, and nothing if they are those already.
func setOwners(
	ctx context.Context, resource dynamic.ResourceInterface, have *unstructured.Unstructured, refs []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	if slices.EqualFunc(refs, have.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) {
		return have, nil
	}
	if refs == nil {
		refs = []metav1.OwnerReference{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": refs, "uid": have.GetUID(), "resourceVersion": have.GetResourceVersion()}})
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, have.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: DefaultManager})
}

// released removes the owner reference of an orphaned object that is still there: another manager that has applied it, too, keeps it.
func (w *write) released(ctx context.Context, done *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !w.Orphaned {
		return done, nil
	}
	return setOwners(ctx, w.resource, done, w.Owner.in(done.GetOwnerReferences(), false))
}

// Release lets an object be that belongs to an owner: it stays when the owner goes.
func (o Owner) Release(ctx context.Context, client dynamic.Interface, t Target) error {
	for try := 1; ; try++ {
		have, err := Get(ctx, client, t)
		if err != nil || have == nil || !o.Owns(have) {
			return err
		}
		_, err = setOwners(ctx, client.Resource(t.GroupVersionResource).Namespace(t.Namespace), have, o.in(have.GetOwnerReferences(), false))
		if IsGone(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return err
		}
	}
}

// Delete deletes an object that belongs to an owner, and says whether it is gone, or is not the owner's to wait for. What the
// record says of an object is not enough: anybody may have written it. It has to bear the owner's reference, and the UID if one was recorded.
// An object that belongs to another work, too, only loses the reference; so does one that somebody else has made anew.
func (o Owner) Delete(ctx context.Context, client dynamic.Interface, t Target, uid types.UID) (gone bool, err error) {
	resource := client.Resource(t.GroupVersionResource).Namespace(t.Namespace)
	for try := 1; ; try++ {
		have, err := Get(ctx, client, t)
		if err != nil || have == nil || !o.Owns(have) {
			return err == nil, err
		}
		refs := o.in(have.GetOwnerReferences(), false)
		if slices.ContainsFunc(refs, o.isWork) || uid != "" && uid != have.GetUID() {
			_, err = setOwners(ctx, resource, have, refs)
			gone = err == nil
		} else if have.GetDeletionTimestamp() != nil {
			return false, nil
		} else {
			is, version, background := have.GetUID(), have.GetResourceVersion(), metav1.DeletePropagationBackground
			err = resource.Delete(ctx, t.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &is, ResourceVersion: &version}, PropagationPolicy: &background})
			// Whether it is gone at once, or waits for a finalizer, is seen at the next look.
			if err == nil {
				var left *unstructured.Unstructured
				left, err = Get(ctx, client, t)
				return err == nil && (left == nil || left.GetUID() != is), err
			}
		}
		if IsGone(err) {
			return true, nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return gone, err
		}
	}
}
