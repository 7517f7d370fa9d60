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

// WorkGroup is the API group of works, and AppliedKind the kind of the owners of objects.
const (
	WorkGroup   = "work.open-cluster-management.io"
	AppliedKind = "AppliedManifestWork"
	// RecordPrefix is the prefix of the names of the ConfigMaps that own objects if the agent has no cluster-scoped objects.
	RecordPrefix = "work-record-"
)

var (
	// AppliedWorks is the resource of the records of an agent of a whole cluster.
	AppliedWorks = schema.GroupVersionResource{Group: WorkGroup, Version: "v1", Resource: "appliedmanifestworks"}
	// ConfigMaps is the resource of the records of an agent that has no cluster-scoped objects.
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// Owner is the owner of the objects of a work: an AppliedManifestWork, or a ConfigMap in their namespace. A previous one of the same name is a
// different owner.
type Owner struct {
	Name string
	UID  types.UID
	// Namespace is the namespace of the ConfigMap; it is empty for an AppliedManifestWork.
	Namespace string
}

// Target returns the owner itself.
func (o Owner) Target() Target {
	if o.Namespace != "" {
		return Target{GroupVersionResource: ConfigMaps, Namespace: o.Namespace, Name: o.Name}
	}
	return Target{GroupVersionResource: AppliedWorks, Name: o.Name}
}

// Reference returns the owner reference to an owner. It is not a controller reference: several works can own one object.
func (o Owner) Reference() metav1.OwnerReference {
	if o.Namespace != "" {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}
	}
	return metav1.OwnerReference{APIVersion: WorkGroup + "/v1", Kind: AppliedKind, Name: o.Name, UID: o.UID}
}

// Owns reports whether an object belongs to this owner. An owner without a UID owns nothing.
func (o Owner) Owns(object *unstructured.Unstructured) bool {
	return o.UID != "" && slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == o.UID && (o.Namespace == "" && isAppliedWork(ref) ||
			o.Namespace != "" && o.Namespace == object.GetNamespace() && isRecord(ref))
	})
}

// in returns owner references with that of this owner if owned, and without it if not.
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

// isRecord reports whether a reference names a ConfigMap that has the name of a record.
func isRecord(ref metav1.OwnerReference) bool {
	return ref.APIVersion == "v1" && ref.Kind == "ConfigMap" && strings.HasPrefix(ref.Name, RecordPrefix)
}

// isWork reports whether a reference may stand for a work that this owner must respect. A user who may write ConfigMaps in a namespace must not
// prevent an agent of the whole cluster from changing what it applied there.
func (o Owner) isWork(ref metav1.OwnerReference) bool {
	return isAppliedWork(ref) || o.Namespace != "" && isRecord(ref)
}

// setOwners writes the owner references of an object, if it is unchanged since it was read. It writes nothing if the object has these references
// already.
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

// released removes the owner reference of an orphaned object that still has it: it stays if another manager applied it too.
func (w *write) released(ctx context.Context, done *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !w.Orphaned {
		return done, nil
	}
	return setOwners(ctx, w.resource, done, w.Owner.in(done.GetOwnerReferences(), false))
}

// Release removes the owner reference from an object, so that it is not deleted with the owner.
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

// Delete deletes an object of this owner. It reports whether the object is gone or has another owner. A record alone does not justify a deletion,
// since any client may have written it: the object must have the owner's reference, and the UID if one was recorded. An object that also belongs to
// another work only loses the reference, as does one that another client has created again.
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
			// The next read shows whether it is gone, or waits for a finalizer.
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
