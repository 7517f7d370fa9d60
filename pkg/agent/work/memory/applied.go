// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
)

// Finalizer blocks the deletion of an AppliedManifestWork until all of its objects are gone.
const Finalizer = workv1.AppliedManifestWorkFinalizer

// HubHash returns the hash that identifies a hub in the names of AppliedManifestWorks: upstream's, of the address in the agent's kubeconfig.
func HubHash(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

// Applied stores an AppliedManifestWork for each work, with upstream's names, so that both agents find each other's records.
type Applied struct {
	client           dynamic.ResourceInterface
	hubHash, agentID string

	mu sync.Mutex
	// taken holds when records were taken over from another agent.
	taken map[types.UID]time.Time
}

// takeoverBackoff is for how long a record is left to another agent that has taken it back. That agent is running too: if both took it over after each
// change, they would overwrite each other forever.
const takeoverBackoff = time.Hour

var _ Memory = &Applied{}

// NewApplied returns the memory of an agent of a hub. The agent's ID is empty unless agents of several hubs share a cluster, or the address of a hub
// changes.
func NewApplied(client dynamic.Interface, hubHash, agentID string) *Applied {
	if agentID == "" {
		agentID = hubHash
	}
	return &Applied{client: client.Resource(workv1.SchemeGroupVersion.WithResource("appliedmanifestworks")), hubHash: hubHash, agentID: agentID,
		taken: map[types.UID]time.Time{}}
}

func (a *Applied) nameOf(work string) string { return a.hubHash + "-" + work }

func parse(object *unstructured.Unstructured) (*workv1.AppliedManifestWork, error) {
	parsed := &workv1.AppliedManifestWork{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, parsed); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", apply.AppliedKind, object.GetName(), err)
	}
	return parsed, nil
}

func recordOf(object *workv1.AppliedManifestWork) *Record {
	r := &Record{
		Owner: apply.Owner{Name: object.Name, UID: object.UID}, Work: object.Spec.ManifestWorkName, HubHash: object.Spec.HubHash,
		Deleting: object.DeletionTimestamp != nil, version: object.ResourceVersion,
	}
	if object.Status.EvictionStartTime != nil {
		r.Evicting = &object.Status.EvictionStartTime.Time
	}
	for _, known := range object.Status.AppliedResources {
		r.Resources = append(r.Resources, AppliedResource{UID: types.UID(known.UID), Target: apply.Target{
			GroupVersionResource: schema.GroupVersionResource{Group: known.Group, Version: known.Version, Resource: known.Resource},
			Namespace:            known.Namespace, Name: known.Name}})
	}
	return r
}

func (a *Applied) get(ctx context.Context, name string) (*workv1.AppliedManifestWork, error) {
	object, err := a.client.Get(ctx, name, metav1.GetOptions{})
	if apply.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", apply.AppliedKind, name, err)
	}
	return parse(object)
}

// Find implements Memory.
func (a *Applied) Find(ctx context.Context, work string) (*Record, error) {
	object, err := a.get(ctx, a.nameOf(work))
	if object == nil || err != nil {
		return nil, err
	}
	return recordOf(object), nil
}

// Ensure implements Memory. It takes over a record of another agent, as upstream's agents do: by its name the record is for this work of this hub. If
// the other agent takes it back, it is left to that agent for a while: the owner of a record only matters when the work is missing.
func (a *Applied) Ensure(ctx context.Context, work string, labels map[string]string, isNew bool) (*Record, error) {
	want := &workv1.AppliedManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.SchemeGroupVersion.String(), Kind: apply.AppliedKind},
		ObjectMeta: metav1.ObjectMeta{Name: a.nameOf(work), Labels: maps.Clone(labels), Finalizers: []string{Finalizer}},
		Spec:       workv1.AppliedManifestWorkSpec{HubHash: a.hubHash, ManifestWorkName: work, AgentID: a.agentID},
	}
	given, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, err
	}
	delete(given, "status")
	object, err := getOrCreate(ctx, a.client, &unstructured.Unstructured{Object: given}, isNew)
	if err != nil {
		return nil, fmt.Errorf("getting or creating %s %s: %w", apply.AppliedKind, want.Name, err)
	}
	have, err := parse(object)
	if err != nil {
		return nil, err
	}
	r := recordOf(have)
	finalized := slices.Contains(have.Finalizers, Finalizer)
	if have.DeletionTimestamp == nil && have.Spec.AgentID != want.Spec.AgentID && !a.mayTakeOver(have.UID) {
		want.Spec.AgentID = have.Spec.AgentID
	}
	if have.DeletionTimestamp != nil || finalized && equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return r, nil
	}
	finalizers := have.Finalizers
	if !finalized {
		finalizers = append(slices.Clone(finalizers), Finalizer)
	}
	r.HubHash, r.Work = a.hubHash, work
	err = a.patch(ctx, r, map[string]any{"spec": want.Spec}, map[string]any{"finalizers": finalizers})
	if err != nil && have.Spec.AgentID != want.Spec.AgentID {
		a.mu.Lock()
		delete(a.taken, have.UID)
		a.mu.Unlock()
	}
	return r, err
}

// mayTakeOver reports whether to take over a record of another agent now.
func (a *Applied) mayTakeOver(record types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if since, ok := a.taken[record]; ok && now.Sub(since) < takeoverBackoff {
		return false
	}
	maps.DeleteFunc(a.taken, func(_ types.UID, since time.Time) bool { return now.Sub(since) >= takeoverBackoff })
	a.taken[record] = now
	return true
}

// getOrCreate returns the object with the name of the given one, which it creates if it does not exist.
func getOrCreate(ctx context.Context, client dynamic.ResourceInterface, want *unstructured.Unstructured, isNew bool) (*unstructured.Unstructured, error) {
	if !isNew {
		if have, err := client.Get(ctx, want.GetName(), metav1.GetOptions{}); !apply.IsGone(err) {
			return have, err
		}
	}
	made, err := client.Create(ctx, want, metav1.CreateOptions{FieldManager: apply.DefaultManager})
	if apierrors.IsAlreadyExists(err) {
		return client.Get(ctx, want.GetName(), metav1.GetOptions{})
	}
	return made, err
}

// patch writes a record if it is unchanged since it was read.
func (a *Applied) patch(ctx context.Context, r *Record, patch, metadata map[string]any, subresource ...string) error {
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = r.Owner.UID, r.version
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	after, err := a.client.Patch(ctx, r.Owner.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: apply.DefaultManager}, subresource...)
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", apply.AppliedKind, r.Owner.Name, err)
	}
	r.version = after.GetResourceVersion()
	return nil
}

// SetResources implements Memory.
func (a *Applied) SetResources(ctx context.Context, r *Record, resources []AppliedResource) error {
	resources = sorted(resources)
	if slices.Equal(sorted(r.Resources), resources) {
		return nil
	}
	known := make([]workv1.AppliedManifestResourceMeta, 0, len(resources))
	for _, resource := range resources {
		known = append(known, workv1.AppliedManifestResourceMeta{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: resource.Group, Resource: resource.Resource, Namespace: resource.Namespace, Name: resource.Name},
			Version: resource.Version, UID: string(resource.UID)})
	}
	if err := a.patch(ctx, r, map[string]any{"status": map[string]any{"appliedResources": known}}, nil, "status"); err != nil {
		return err
	}
	r.Resources = resources
	return nil
}

// Evict implements Memory.
func (a *Applied) Evict(ctx context.Context, r *Record, since *time.Time) error {
	if (r.Evicting == nil) == (since == nil) {
		return nil
	}
	var start any
	if since != nil {
		start = metav1.NewTime(*since)
	}
	err := a.patch(ctx, r, map[string]any{"status": map[string]any{"evictionStartTime": start}}, nil, "status")
	if err == nil {
		r.Evicting = since
	}
	return err
}

// StartDeletion implements Memory.
func (a *Applied) StartDeletion(ctx context.Context, r *Record) error {
	if r.Deleting {
		return nil
	}
	err := a.client.Delete(ctx, r.Owner.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.Owner.UID, ResourceVersion: &r.version}})
	if err != nil && !apply.IsGone(err) {
		return fmt.Errorf("deleting %s %s: %w", apply.AppliedKind, r.Owner.Name, err)
	}
	r.Deleting = true
	object, err := a.get(ctx, r.Owner.Name)
	if object != nil && object.UID == r.Owner.UID {
		r.version = object.ResourceVersion
	}
	return err
}

// CompleteDeletion implements Memory.
func (a *Applied) CompleteDeletion(ctx context.Context, r *Record) error {
	object, err := a.get(ctx, r.Owner.Name)
	if err != nil || object == nil || object.UID != r.Owner.UID || !slices.Contains(object.Finalizers, Finalizer) {
		return err
	}
	if object.DeletionTimestamp == nil {
		return apierrors.NewConflict(workv1.SchemeGroupVersion.WithResource("appliedmanifestworks").GroupResource(), r.Owner.Name,
			fmt.Errorf("it is not being deleted"))
	}
	left := slices.DeleteFunc(slices.Clone(object.Finalizers), func(f string) bool { return f == Finalizer })
	r.version = object.ResourceVersion
	if err := a.patch(ctx, r, map[string]any{}, map[string]any{"finalizers": left}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// List implements Memory. It ignores records of other agents.
func (a *Applied) List(ctx context.Context) (records []*Record, err error) {
	err = paging.EachItem(ctx, a.client.List, metav1.ListOptions{}, func(item *unstructured.Unstructured) error {
		object, err := parse(item)
		// A record whose name does not match its spec was written by another client.
		if err == nil && object.Spec.AgentID == a.agentID && object.Name == object.Spec.HubHash+"-"+object.Spec.ManifestWorkName {
			records = append(records, recordOf(object))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %ss: %w", apply.AppliedKind, err)
	}
	return records, nil
}

// OtherOwner implements Memory. No agent applies a work any more whose record is being deleted, or whose record is for a missing work or a former address
// of this agent's hub.
func (a *Applied) OtherOwner(ctx context.Context, ref metav1.OwnerReference) (string, error) {
	object, err := a.get(ctx, ref.Name)
	if err != nil || object == nil || object.UID != ref.UID || object.DeletionTimestamp != nil || object.Status.EvictionStartTime != nil {
		return "", err
	}
	switch former := object.Spec.HubHash != a.hubHash; {
	case former && object.Spec.AgentID == a.agentID:
		return "", nil
	case former:
		return object.Spec.ManifestWorkName + " of another hub (" + object.Name + ")", nil
	}
	return object.Spec.ManifestWorkName, nil
}
