// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package withdraw deletes the records of an agent from a cluster that it leaves, and deletes or orphans their objects. It requires that the agent
// does not run at the same time. It can be interrupted at any line, and then starts again from the state of the cluster.
package withdraw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// Fate is whether objects are deleted or kept.
type Fate string

// Objects are deleted with the records, or kept as they are, without an owner.
const (
	Delete Fate = "delete"
	Keep   Fate = "keep"
)

const (
	// pageSize is the number of records in a page of a list.
	pageSize = 500
	// tries is the number of attempts to write a record that other clients change concurrently.
	tries = 5
	// maxErrors is the maximum number of objects of a record that are named in an error.
	maxErrors = 8
	// askedAnnotation has the UID of a record for which a request to orphan the dependents was sent to the garbage collector.
	askedAnnotation = "work.clusterhub.dev/garbage-collector-asked"
)

// ClusterScoped is a cluster that an agent leaves.
type ClusterScoped struct {
	client  dynamic.Interface
	records dynamic.ResourceInterface
	versions
}

// WorkRecord is an agent's record of one work.
type WorkRecord struct {
	// Work is the name of the work on the hub, and Objects the number of its objects according to the record.
	Work    string
	Objects int

	// object is the record in a whole cluster, and kept the record in one namespace.
	object *workv1.AppliedManifestWork
	kept   *memory.Record
}

// Records lists and deletes the records of agents, in a whole cluster or in one namespace.
type Records interface {
	Records(ctx context.Context, agentID string) (own []WorkRecord, others int, err error)
	End(ctx context.Context, r WorkRecord, fate Fate) (waitsFor string, err error)
}

var _ Records = &ClusterScoped{}

// UID returns the UID that identifies the record.
func (r WorkRecord) UID() types.UID { return r.owner().UID }

func (r WorkRecord) owner() apply.Owner {
	if r.kept != nil {
		return r.kept.Owner
	}
	return apply.Owner{Name: r.object.Name, UID: r.object.UID}
}

// objects calls do for each object of a record that has valid names.
func (r WorkRecord) objects(do func(t apply.Target, uid types.UID) (goOn bool)) {
	if r.kept != nil {
		for _, known := range r.kept.Resources {
			if isTarget(known.Target) && !do(known.Target, known.UID) {
				return
			}
		}
		return
	}
	for _, known := range r.object.Status.AppliedResources {
		if t := targetOf(known); isTarget(t) && !do(t, types.UID(known.UID)) {
			return
		}
	}
}

// New returns a ClusterScoped that has sent no requests yet.
func New(config *rest.Config) (*ClusterScoped, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &ClusterScoped{client: client, versions: versions{discoveryClient.RESTClient()},
		records: client.Resource(workv1.SchemeGroupVersion.WithResource("appliedmanifestworks"))}, nil
}

// AgentID returns the ID of an agent in its records if no other ID was set, as upstream.
func AgentID(hubURL string) string { return memory.HubHash(hubURL) }

// Records returns the records of an agent, and the number of records of others. A cluster that does not serve the kind has none. As for the agent
// itself, records whose name does not match their spec are not the agent's.
func (c *ClusterScoped) Records(ctx context.Context, agentID string) (own []WorkRecord, others int, err error) {
	err = c.pages(ctx, agentID, func(page []WorkRecord, more int) (enough bool) {
		own, others = append(own, page...), others+more
		return false
	})
	if err != nil {
		return nil, 0, err
	}
	return own, others, nil
}

// Some returns some records of an agent, as many as fit in a page; none if the agent has none. It is for clusters that are not trusted: however many
// records one has, or claims to have, no more than a page is in memory. The next call returns others, once these are deleted.
func (c *ClusterScoped) Some(ctx context.Context, agentID string) (own []WorkRecord, err error) {
	err = c.pages(ctx, agentID, func(page []WorkRecord, _ int) (enough bool) {
		own = page
		return len(page) > 0
	})
	return own, err
}

// pages calls do with the records of an agent, and the number of records of others, page by page, until do returns true.
func (c *ClusterScoped) pages(ctx context.Context, agentID string, do func(own []WorkRecord, others int) (enough bool)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.records.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %ss: %w", apply.AppliedKind, err)
		}
		var own []WorkRecord
		others := 0
		for i := range page.Items {
			record, err := parse(&page.Items[i])
			switch {
			case err != nil:
				return err
			case agentID == "" || record.Spec.AgentID != agentID || record.Name != record.Spec.HubHash+"-"+record.Spec.ManifestWorkName:
				others++
			default:
				own = append(own, WorkRecord{Work: record.Spec.ManifestWorkName, Objects: len(record.Status.AppliedResources), object: record})
			}
		}
		if do(own, others) {
			return nil
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
	}
}

func parse(object *unstructured.Unstructured) (*workv1.AppliedManifestWork, error) {
	parsed := &workv1.AppliedManifestWork{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, parsed); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", apply.AppliedKind, object.GetName(), err)
	}
	return parsed, nil
}

// End deletes a record, as far as possible at present. It returns what it waits for; empty if the record is gone.
func (c *ClusterScoped) End(ctx context.Context, r WorkRecord, fate Fate) (waitsFor string, err error) {
	propagation := metav1.DeletePropagationBackground
	switch fate {
	case Delete:
		waitsFor, err = c.deleteObjects(ctx, r)
	case Keep:
		// Owner references are removed before the record is deleted: the cluster would delete objects whose owner does not exist. The garbage
		// collector orphans objects that the record does not name.
		err = c.eachObject(ctx, r, c.release(ctx))
		propagation = metav1.DeletePropagationOrphan
	default:
		err = fmt.Errorf("the fate of objects must be %s or %s, not %q", Delete, Keep, fate)
	}
	if waitsFor != "" || err != nil {
		return waitsFor, err
	}
	now, err := c.startDeletion(ctx, r, propagation)
	if err != nil || now == nil {
		return "", err
	}
	return c.completeDeletion(ctx, now, propagation == metav1.DeletePropagationOrphan)
}

func deletionRequested(record *workv1.AppliedManifestWork) bool {
	return record.Annotations[askedAnnotation] == string(record.UID)
}

// startDeletion starts the deletion of a record, and returns the record afterwards, or nil if it is gone. The server uses the propagation policy of the last
// request. Orphaning the dependents is requested once: to request it again each time it is done would never end. An annotation records the
// request, since missing finalizers do not prove it: other clients may also delete the record and remove finalizers.
func (c *ClusterScoped) startDeletion(ctx context.Context, r WorkRecord, propagation metav1.DeletionPropagation) (*workv1.AppliedManifestWork, error) {
	begun := r.object.DeletionTimestamp != nil
	if orphaning := slices.Contains(r.object.Finalizers, metav1.FinalizerOrphanDependents); propagation == metav1.DeletePropagationOrphan {
		begun = begun && (orphaning || deletionRequested(r.object))
	} else {
		begun = begun && !orphaning
	}
	if !begun {
		err := c.records.Delete(ctx, r.object.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &r.object.UID}, PropagationPolicy: &propagation})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("deleting %s %s: %w", apply.AppliedKind, r.object.Name, err)
		}
	}
	return c.read(ctx, r.object.Name, r.object.UID)
}

// read returns the current record, or nil if it is gone.
func (c *ClusterScoped) read(ctx context.Context, name string, uid types.UID) (*workv1.AppliedManifestWork, error) {
	object, err := c.records.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", apply.AppliedKind, name, err)
	}
	now, err := parse(object)
	if err != nil || now.UID != uid {
		return nil, err
	}
	return now, nil
}

// completeDeletion removes the agent's finalizer from a record that is being deleted, and returns what the record still waits for. It does so while the finalizer
// of the garbage collector is present: the garbage collector removes that after it has orphaned the dependents, and then the record is gone. The same
// write records whether orphaning was requested.
func (c *ClusterScoped) completeDeletion(ctx context.Context, now *workv1.AppliedManifestWork, asked bool) (waitsFor string, err error) {
	left := now.Finalizers
	for try := 1; slices.Contains(now.Finalizers, memory.Finalizer) || asked != deletionRequested(now); try++ {
		left = slices.DeleteFunc(slices.Clone(now.Finalizers), func(f string) bool { return f == memory.Finalizer })
		annotations := map[string]any{askedAnnotation: nil} // a user may keep, then delete, and then keep
		if asked {
			annotations[askedAnnotation] = now.UID
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"finalizers": left, "annotations": annotations, "uid": now.UID, "resourceVersion": now.ResourceVersion}})
		if err != nil {
			return "", err
		}
		_, err = c.records.Patch(ctx, now.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: apply.DefaultManager})
		if err == nil {
			break
		}
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if !apierrors.IsConflict(err) {
			return "", fmt.Errorf("writing %s %s: %w", apply.AppliedKind, now.Name, err)
		}
		if try == tries {
			return "another program that writes the record of work " + now.Spec.ManifestWorkName, nil
		}
		// The garbage collector writes it, too.
		now, err = c.read(ctx, now.Name, now.UID)
		if err != nil || now == nil {
			return "", err
		}
		left = now.Finalizers
	}
	switch {
	case slices.Contains(left, metav1.FinalizerOrphanDependents):
		return "the cluster's garbage collector to orphan the objects of work " + now.Spec.ManifestWorkName, nil
	case len(left) > 0:
		return fmt.Sprintf("the finalizers %s of the record of work %s", strings.Join(left, ", "), now.Spec.ManifestWorkName), nil
	}
	return "", nil
}

// release returns a function that removes the owner reference from an object.
func (c *ClusterScoped) release(ctx context.Context) func(owner apply.Owner, t apply.Target, _ types.UID) error {
	return func(owner apply.Owner, t apply.Target, _ types.UID) error { return owner.Release(ctx, c.client, t) }
}

// deleteObjects deletes the objects that have the owner reference of a record, and returns one that is left.
func (c *ClusterScoped) deleteObjects(ctx context.Context, r WorkRecord) (waitsFor string, err error) {
	err = c.eachObject(ctx, r, func(owner apply.Owner, t apply.Target, uid types.UID) error {
		if t.Immortal() {
			return owner.Release(ctx, c.client, t)
		}
		gone, err := owner.Delete(ctx, c.client, t, uid)
		if err == nil && !gone {
			waitsFor = "the deletion of " + t.String()
		}
		return err
	})
	return waitsFor, err
}

// eachObject calls do for each object of a record whose kind the cluster serves. An object that fails does not block the others. An object whose kind
// is not served does not exist. Only the first failed objects are named, since a record may have any number.
func (c *ClusterScoped) eachObject(ctx context.Context, r WorkRecord, do func(owner apply.Owner, t apply.Target, uid types.UID) error) error {
	owner := r.owner()
	var errs []error
	more := 0
	r.objects(func(t apply.Target, uid types.UID) (goOn bool) {
		err := do(owner, t, uid)
		notServed := apply.IsNotServed(err)
		if apierrors.IsForbidden(err) && t.Group != "" {
			// For an object that does not exist, a user without all rights gets the same error.
			served, failed := c.serves(ctx, t.GroupVersionResource)
			notServed = failed == nil && !served
		}
		if notServed {
			var ok bool
			t, ok, err = c.otherVersion(ctx, t)
			if ok {
				err = do(owner, t, uid)
			}
			if apply.IsNotServed(err) {
				err = nil
			}
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			errs = append(errs, ctx.Err())
			return false
		case len(errs) == maxErrors:
			more++
		default:
			errs = append(errs, fmt.Errorf("%s of work %s: %w", t, r.Work, err))
		}
		return true
	})
	if more > 0 {
		errs = append(errs, fmt.Errorf("%d more objects of work %s", more, r.Work))
	}
	return errors.Join(errs...)
}

// targetOf returns an object in the version that was recorded.
func targetOf(known workv1.AppliedManifestResourceMeta) apply.Target {
	return apply.Target{Namespace: known.Namespace, Name: known.Name,
		GroupVersionResource: schema.GroupVersionResource{Group: known.Group, Version: known.Version, Resource: known.Resource}}
}

// isTarget reports whether the names of a target's resource are valid.
func isTarget(t apply.Target) bool {
	for _, part := range []string{t.Group, t.Version, t.Resource} {
		if len(content.IsPathSegmentName(part)) > 0 {
			return false
		}
	}
	return true
}
