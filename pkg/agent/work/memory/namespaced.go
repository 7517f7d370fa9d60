// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
)

// RecordLabel is the label of each record of a Namespaced. Its value is a hash of the ID of the agent.
const RecordLabel = "work.clusterhub.dev/agent"

const (
	// shortHash is the length of a hash in names and labels, whose length is limited.
	shortHash = 32
	// maxResources and maxBytes bound a record: a ConfigMap has at most 1 MiB.
	maxResources, maxBytes = 2048, 768 << 10
)

// The keys of a record.
const (
	keyHub       = "hubHash"
	keyAgent     = "agentID"
	keyWork      = "work"
	keyResources = "resources"
	keyEvicting  = "evictionStartTime"
	keyDeleting  = "deleting"
)

// Namespaced stores a ConfigMap for each work, in the namespace that has all objects of the works. It needs no rights in other namespaces.
//
// A record has no finalizer: an agent that is deleted with the namespace could not remove it. Instead, a key of the record marks it for deletion. If
// another client deletes the record, the garbage collector deletes its objects, as it does for an AppliedManifestWork.
type Namespaced struct {
	client                      dynamic.ResourceInterface
	namespace, hubHash, agentID string
}

var _ Memory = &Namespaced{}

// NewNamespaced returns the memory of an agent of a hub that has rights in one namespace. There may be several agents in one namespace, even of the
// same hub: the hash identifies hub and cluster, HubHash("<address>/<cluster>"). The ID is empty unless the address of a hub changes.
func NewNamespaced(client dynamic.Interface, namespace, hash, agentID string) *Namespaced {
	if agentID == "" {
		agentID = hash
	}
	return &Namespaced{client: client.Resource(apply.ConfigMaps).Namespace(namespace), namespace: namespace, hubHash: hash, agentID: agentID}
}

func nameOfRecord(hash, work string) string {
	return apply.RecordPrefix + hash[:min(len(hash), shortHash)] + "-" + work
}

func (n *Namespaced) labels(more map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, more)
	labels[RecordLabel] = HubHash(n.agentID)[:shortHash]
	return labels
}

// kept is a resource in a record: it is in the namespace of the record.
type kept struct {
	Group    string    `json:"group,omitempty"`
	Version  string    `json:"version"`
	Resource string    `json:"resource"`
	Name     string    `json:"name"`
	UID      types.UID `json:"uid,omitempty"`
}

func dataOf(object *unstructured.Unstructured) map[string]string {
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil
	}
	return data
}

// record parses a ConfigMap. It ignores what it cannot parse: other clients may have written it, and the agent writes it again.
func (n *Namespaced) record(object *unstructured.Unstructured) *Record {
	data := dataOf(object)
	r := &Record{
		Owner: apply.Owner{Name: object.GetName(), UID: object.GetUID(), Namespace: n.namespace}, Work: data[keyWork], HubHash: data[keyHub],
		Deleting: object.GetDeletionTimestamp() != nil || data[keyDeleting] != "", version: object.GetResourceVersion(),
	}
	if since, err := time.Parse(time.RFC3339, data[keyEvicting]); err == nil {
		r.Evicting = &since
	}
	var resources []kept
	if err := json.Unmarshal([]byte(data[keyResources]), &resources); err != nil {
		return r
	}
	for _, one := range resources[:min(len(resources), maxResources)] {
		if one.Resource != "" && one.Version != "" && one.Name != "" {
			r.Resources = append(r.Resources, AppliedResource{UID: one.UID, Target: apply.Target{
				GroupVersionResource: schema.GroupVersionResource{Group: one.Group, Version: one.Version, Resource: one.Resource},
				Namespace:            n.namespace, Name: one.Name}})
		}
	}
	return r
}

func (n *Namespaced) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	object, err := n.client.Get(ctx, name, metav1.GetOptions{})
	if apply.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record %s/%s: %w", n.namespace, name, err)
	}
	return object, nil
}

// Find implements Memory.
func (n *Namespaced) Find(ctx context.Context, work string) (*Record, error) {
	object, err := n.get(ctx, nameOfRecord(n.hubHash, work))
	if object == nil || err != nil {
		return nil, err
	}
	return n.record(object), nil
}

// Ensure implements Memory.
func (n *Namespaced) Ensure(ctx context.Context, work string, labels map[string]string, isNew bool) (*Record, error) {
	name, labels := nameOfRecord(n.hubHash, work), n.labels(labels)
	want := map[string]string{keyHub: n.hubHash, keyAgent: n.agentID, keyWork: work}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName(name)
	object.SetLabels(labels)
	_ = unstructured.SetNestedStringMap(object.Object, want, "data")
	have, err := getOrCreate(ctx, n.client, object, isNew)
	if err != nil {
		return nil, fmt.Errorf("getting or creating the record %s/%s: %w", n.namespace, name, err)
	}
	r, data := n.record(have), dataOf(have)
	same := have.GetLabels()[RecordLabel] == labels[RecordLabel]
	for key, value := range want {
		same = same && data[key] == value
	}
	if r.Deleting || same {
		return r, nil
	}
	change := map[string]any{}
	for key, value := range want {
		change[key] = value
	}
	r.HubHash, r.Work = n.hubHash, work
	return r, n.patch(ctx, r, change, map[string]any{"labels": map[string]string{RecordLabel: labels[RecordLabel]}})
}

// patch writes a record if it is unchanged since it was read.
func (n *Namespaced) patch(ctx context.Context, r *Record, data, metadata map[string]any) error {
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = r.Owner.UID, r.version
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "data": data})
	if err != nil {
		return err
	}
	after, err := n.client.Patch(ctx, r.Owner.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: apply.DefaultManager})
	if apply.IsGone(err) {
		return n.staleError(r, "it was deleted")
	}
	if err != nil {
		return fmt.Errorf("writing the record %s/%s: %w", n.namespace, r.Owner.Name, err)
	}
	r.version = after.GetResourceVersion()
	return nil
}

func (n *Namespaced) staleError(r *Record, why string) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), r.Owner.Name, errors.New(why))
}

// SetResources implements Memory.
func (n *Namespaced) SetResources(ctx context.Context, r *Record, resources []AppliedResource) error {
	resources = sorted(resources)
	if slices.Equal(sorted(r.Resources), resources) {
		return nil
	}
	all := make([]kept, 0, len(resources))
	for _, one := range resources {
		if one.Namespace != n.namespace {
			return fmt.Errorf("%s is not in the namespace %s, which is the only one in which the agent applies objects", one.Target, n.namespace)
		}
		all = append(all, kept{one.Group, one.Version, one.Resource, one.Name, one.UID})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if len(all) > maxResources || len(data) > maxBytes {
		return fmt.Errorf("expected at most %d objects and %d bytes in the record %s/%s, got %d and %d: split the work",
			maxResources, maxBytes, n.namespace, r.Owner.Name, len(all), len(data))
	}
	if err := n.patch(ctx, r, map[string]any{keyResources: string(data)}, nil); err != nil {
		return err
	}
	r.Resources = resources
	return nil
}

// Evict implements Memory.
func (n *Namespaced) Evict(ctx context.Context, r *Record, since *time.Time) error {
	if (r.Evicting == nil) == (since == nil) {
		return nil
	}
	var start any
	if since != nil {
		start = since.UTC().Format(time.RFC3339)
	}
	err := n.patch(ctx, r, map[string]any{keyEvicting: start}, nil)
	if err == nil {
		r.Evicting = since
	}
	return err
}

// StartDeletion implements Memory.
func (n *Namespaced) StartDeletion(ctx context.Context, r *Record) error {
	if r.Deleting {
		return nil
	}
	err := n.patch(ctx, r, map[string]any{keyDeleting: "true"}, nil)
	if err == nil {
		r.Deleting = true
	}
	return err
}

// CompleteDeletion implements Memory.
func (n *Namespaced) CompleteDeletion(ctx context.Context, r *Record) error {
	object, err := n.get(ctx, r.Owner.Name)
	if err != nil || object == nil || object.GetUID() != r.Owner.UID || object.GetDeletionTimestamp() != nil {
		return err
	}
	if !n.record(object).Deleting {
		return n.staleError(r, "it is not being deleted")
	}
	is, version := object.GetUID(), object.GetResourceVersion()
	err = n.client.Delete(ctx, r.Owner.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &is, ResourceVersion: &version}})
	if err != nil && !apply.IsGone(err) {
		return fmt.Errorf("deleting the record %s/%s: %w", n.namespace, r.Owner.Name, err)
	}
	return nil
}

// List implements Memory. It ignores records of other agents.
func (n *Namespaced) List(ctx context.Context) (records []*Record, err error) {
	options := metav1.ListOptions{LabelSelector: RecordLabel + "=" + HubHash(n.agentID)[:shortHash]}
	err = paging.EachItem(ctx, n.client.List, options, func(object *unstructured.Unstructured) error {
		data := dataOf(object)
		// A record whose name does not match its data was written by another client.
		if data[keyAgent] == n.agentID && object.GetName() == nameOfRecord(data[keyHub], data[keyWork]) {
			records = append(records, n.record(object))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the records of namespace %s: %w", n.namespace, err)
	}
	return records, nil
}

// OtherOwner implements Memory. An AppliedManifestWork belongs to an agent of the whole cluster, which has priority: it cannot be read here.
func (n *Namespaced) OtherOwner(ctx context.Context, ref metav1.OwnerReference) (string, error) {
	if ref.Kind == apply.AppliedKind {
		return ref.Name + " of an agent of the whole cluster", nil
	}
	object, err := n.get(ctx, ref.Name)
	if err != nil || object == nil || object.GetUID() != ref.UID {
		return "", err
	}
	r, data := n.record(object), dataOf(object)
	if r.Deleting || r.Evicting != nil || object.GetName() != nameOfRecord(r.HubHash, r.Work) {
		return "", nil
	}
	switch former := r.HubHash != n.hubHash; {
	case former && data[keyAgent] == n.agentID:
		return "", nil
	case former:
		return r.Work + " of another hub or cluster (" + object.GetName() + ")", nil
	}
	return r.Work, nil
}
