// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package withdraw ends what an agent has brought to a cluster that it leaves: its records are forgotten, and the objects are deleted
// or stay. No agent runs meanwhile. It can end at any line, and begins anew with what the cluster says.
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

// Fate is what becomes of objects.
type Fate string

// Objects are deleted with the records, or kept as they are, without an owner.
const (
	Delete Fate = "delete"
	Keep   Fate = "keep"
)

const (
	// pageSize is how many records are read at once.
	pageSize = 500
	// tries is how often a record is read anew that others have changed meanwhile.
	tries = 5
	// mostErrors is how many objects of a record are named that could not be ended.
	mostErrors = 8
	// askedAnnotation has the UID of a record for which the garbage collector was asked to let go of its dependents.
	askedAnnotation = "work.clusterhub.dev/garbage-collector-asked"
)

// Cluster is one that an agent leaves.
type Cluster struct {
	client  dynamic.Interface
	records dynamic.ResourceInterface
	versions
}

// Record is what an agent remembers of one work.
type Record struct {
	// Work is its name on the hub, and Objects how many objects it has, as far as the record says.
	Work    string
	Objects int

	// object is what it is in a cluster, or kept in one namespace.
	object *workv1.AppliedManifestWork
	kept   *memory.Record
}

// Records are what agents remember of works, and what ends that: a whole cluster, or one namespace.
type Records interface {
	Records(ctx context.Context, agentID string) (own []Record, others int, err error)
	End(ctx context.Context, r Record, fate Fate) (waitsFor string, err error)
}

var _ Records = &Cluster{}

// UID tells records apart.
func (r Record) UID() types.UID { return r.owner().UID }

func (r Record) owner() apply.Owner {
	if r.kept != nil {
		return r.kept.Owner
	}
	return apply.Owner{Name: r.object.Name, UID: r.object.UID}
}

// objects calls do for what a record says it has, as far as that can be names.
func (r Record) objects(do func(t apply.Target, uid types.UID) (goOn bool)) {
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

// New asks nothing yet.
func New(config *rest.Config) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{client: client, versions: versions{discoveryClient.RESTClient()},
		records: client.Resource(workv1.SchemeGroupVersion.WithResource("appliedmanifestworks"))}, nil
}

// AgentID is what an agent is called in its records that was given no other name: upstream's rule.
func AgentID(hubURL string) string { return memory.HubHash(hubURL) }

// Records are those of an agent, and how many there are of others. A cluster that does not know the kind has none. What contradicts
// itself is not the agent's, as the agent itself has it.
func (c *Cluster) Records(ctx context.Context, agentID string) (own []Record, others int, err error) {
	err = c.pages(ctx, agentID, func(page []Record, more int) (enough bool) {
		own, others = append(own, page...), others+more
		return false
	})
	if err != nil {
		return nil, 0, err
	}
	return own, others, nil
}

// Some are records of an agent, as many as come at once; none if there are none. It is for clusters that are not trusted: however many
// records one has, or says that it has, no more are in memory. Others are there when these are ended.
func (c *Cluster) Some(ctx context.Context, agentID string) (own []Record, err error) {
	err = c.pages(ctx, agentID, func(page []Record, _ int) (enough bool) {
		own = page
		return len(page) > 0
	})
	return own, err
}

// pages calls do with the records of an agent, and how many there are of others, page by page, until that is enough.
func (c *Cluster) pages(ctx context.Context, agentID string, do func(own []Record, others int) (enough bool)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.records.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %ss: %w", apply.AppliedKind, err)
		}
		var own []Record
		others := 0
		for i := range page.Items {
			record, err := parse(&page.Items[i])
			switch {
			case err != nil:
				return err
			case agentID == "" || record.Spec.AgentID != agentID || record.Name != record.Spec.HubHash+"-"+record.Spec.ManifestWorkName:
				others++
			default:
				own = append(own, Record{Work: record.Spec.ManifestWorkName, Objects: len(record.Status.AppliedResources), object: record})
			}
		}
		if do(own, others) {
			return nil
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
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

// End ends a record, as far as that goes now. It returns what it waits for; nothing if the record is gone.
func (c *Cluster) End(ctx context.Context, r Record, fate Fate) (waitsFor string, err error) {
	propagation := metav1.DeletePropagationBackground
	switch fate {
	case Delete:
		waitsFor, err = c.deleteObjects(ctx, r)
	case Keep:
		// The reference goes before the record does: what belongs to nothing is garbage to the cluster. The garbage collector lets go
		// of what the record does not say.
		err = c.eachObject(ctx, r, c.release(ctx))
		propagation = metav1.DeletePropagationOrphan
	default:
		err = fmt.Errorf("the fate of objects must be %s or %s, not %q", Delete, Keep, fate)
	}
	if waitsFor != "" || err != nil {
		return waitsFor, err
	}
	now, err := c.forget(ctx, r, propagation)
	if err != nil || now == nil {
		return "", err
	}
	return c.drop(ctx, now, propagation == metav1.DeletePropagationOrphan)
}

func wasAsked(record *workv1.AppliedManifestWork) bool {
	return record.Annotations[askedAnnotation] == string(record.UID)
}

// forget begins the end of a record, and returns it as it is then, or nil if it is gone. The server lets the last word on what becomes
// of dependents count. The garbage collector is asked once to let go of them: to ask again whenever it has finished would never end. That
// it was asked is not told by what the record has no more: others, too, may delete it and take finalizers away.
func (c *Cluster) forget(ctx context.Context, r Record, propagation metav1.DeletionPropagation) (*workv1.AppliedManifestWork, error) {
	begun := r.object.DeletionTimestamp != nil
	if orphaning := slices.Contains(r.object.Finalizers, metav1.FinalizerOrphanDependents); propagation == metav1.DeletePropagationOrphan {
		begun = begun && (orphaning || wasAsked(r.object))
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

// read is a record as it is, or nil if it is gone.
func (c *Cluster) read(ctx context.Context, name string, uid types.UID) (*workv1.AppliedManifestWork, error) {
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

// drop takes the agent's finalizer away from a record whose deletion has begun, and says what holds it still. That is done while the garbage
// collector has its own finalizer there: it takes that away when it has let go of the dependents, and then the record is gone. Whether the
// collector was asked is written with it.
func (c *Cluster) drop(ctx context.Context, now *workv1.AppliedManifestWork, asked bool) (waitsFor string, err error) {
	left := now.Finalizers
	for try := 1; slices.Contains(now.Finalizers, memory.Finalizer) || asked != wasAsked(now); try++ {
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
		if now, err = c.read(ctx, now.Name, now.UID); err != nil || now == nil {
			return "", err
		}
		left = now.Finalizers
	}
	switch {
	case slices.Contains(left, metav1.FinalizerOrphanDependents):
		return "the cluster's garbage collector to let go of the objects of work " + now.Spec.ManifestWorkName, nil
	case len(left) > 0:
		return fmt.Sprintf("the finalizers %s of the record of work %s", strings.Join(left, ", "), now.Spec.ManifestWorkName), nil
	}
	return "", nil
}

// release lets go of an object.
func (c *Cluster) release(ctx context.Context) func(owner apply.Owner, t apply.Target, _ types.UID) error {
	return func(owner apply.Owner, t apply.Target, _ types.UID) error { return owner.Release(ctx, c.client, t) }
}

// deleteObjects deletes what bears the reference of a record, and says what is left.
func (c *Cluster) deleteObjects(ctx context.Context, r Record) (waitsFor string, err error) {
	err = c.eachObject(ctx, r, func(owner apply.Owner, t apply.Target, uid types.UID) error {
		if t.Immortal() {
			return owner.Release(ctx, c.client, t)
		}
		gone, err := owner.Delete(ctx, c.client, t, uid)
		if err == nil && !gone {
			waitsFor = "the end of " + t.String()
		}
		return err
	})
	return waitsFor, err
}

// eachObject calls do for each object of a record whose kind the cluster has. An object that fails holds up no other. Without its
// kind there is no object. Of those that fail the first are named: a record may say that there are any number of them.
func (c *Cluster) eachObject(ctx context.Context, r Record, do func(owner apply.Owner, t apply.Target, uid types.UID) error) error {
	owner := r.owner()
	var errs []error
	more := 0
	r.objects(func(t apply.Target, uid types.UID) (goOn bool) {
		err := do(owner, t, uid)
		notServed := apply.IsNotServed(err)
		if apierrors.IsForbidden(err) && t.Group != "" {
			// A user who may not do everything is told so of what is not there, too.
			served, failed := c.serves(ctx, t.GroupVersionResource)
			notServed = failed == nil && !served
		}
		if notServed {
			var ok bool
			if t, ok, err = c.otherVersion(ctx, t); ok {
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
		case len(errs) == mostErrors:
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

// targetOf is an object in the version that was recorded.
func targetOf(known workv1.AppliedManifestResourceMeta) apply.Target {
	return apply.Target{Namespace: known.Namespace, Name: known.Name,
		GroupVersionResource: schema.GroupVersionResource{Group: known.Group, Version: known.Version, Resource: known.Resource}}
}

// isTarget is false for what is no name of a resource.
func isTarget(t apply.Target) bool {
	for _, part := range []string{t.Group, t.Version, t.Resource} {
		if len(content.IsPathSegmentName(part)) > 0 {
			return false
		}
	}
	return true
}
