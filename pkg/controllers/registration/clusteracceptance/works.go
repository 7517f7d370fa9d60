// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// What is left in a cluster that is being deleted is checked after a quarter of the time since its deletion, within these limits.
	minLeftInterval = 2 * time.Second
	maxLeftInterval = 5 * time.Minute
	// highestPriority is the cleanup priority of the last objects to be deleted.
	highestPriority = 100
)

var addOns = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1alpha1"}

// delivered are the kinds by which objects are delivered to clusters, in the order of their deletion. Add-ons, from upstream's
// CustomResourceDefinitions, would create their works again if these were deleted first.
var delivered = []schema.GroupVersionKind{addOns.WithKind("ManagedClusterAddOn"), workv1.SchemeGroupVersion.WithKind("ManifestWork")}

// deleteDelivered deletes the works and add-ons of a cluster that is being deleted, and waits until its agent has deleted their objects in the
// cluster: for that the agent needs its rights. It skips clusters that are not accepted, whose agent has none, and namespaces that do not belong to
// the cluster.
func (p *pass) deleteDelivered(ctx context.Context) error {
	if !p.cluster.Spec.HubAcceptsClient {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := p.live.Get(ctx, client.ObjectKey{Name: p.name}, namespace); err != nil {
		return kit.IgnoreGone(err)
	}
	if namespace.Labels[registration.ClusterNameLabel] != p.name {
		return nil
	}
	// Each check lists objects, so events do not cause one.
	if wait := p.pace.untilLeftCheck(); wait > 0 {
		return kit.Requeue(wait)
	}
	for _, kind := range delivered {
		if err := p.deleteKind(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// deleteKind deletes the objects of one kind in the cluster's namespace, and returns what remains.
func (p *pass) deleteKind(ctx context.Context, kind schema.GroupVersionKind) error {
	left, err := nextToDelete(ctx, p.live, kind, p.name)
	if err != nil {
		return fmt.Errorf("listing the %ss of the cluster: %w", kind.Kind, err)
	}
	if len(left) == 0 {
		return nil
	}
	names := make([]string, len(left))
	for i := range left {
		names[i] = left[i].Name
		if !left[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := p.objects.delete(ctx, &left[i]); err != nil {
			return err
		}
	}
	elapsed := p.clock.Now().Sub(p.cluster.DeletionTimestamp.Time)
	after := min(max(elapsed/4, minLeftInterval), maxLeftInterval)
	p.pace.checkLeftAfter(after)
	return remaining(after, "The agent must delete the objects that it applied to the cluster. "+
		"If the agent is permanently gone, deny the cluster (kubectl hub deny --clusters %s): then it is deleted immediately with these, and "+
		"the objects remain in the cluster. Remaining: %ss %s", p.name, kind.Kind, shortened(names))
}

// someNames is the maximum number of names in a message.
const someNames = 3

// shortened returns the first of many names, for a message.
func shortened(names []string) string {
	if len(names) <= someNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:someNames], ", "), len(names)-someNames)
}

// reportDeletion reports what a cluster that is being deleted waits for: in a condition when that has changed, and once in an event. delivered reports
// that works or add-ons are left, and result is the result of the reconciliation. When the hub has deleted everything, it is only reported for a
// cluster that still exists because of finalizers of others.
func (p *pass) reportDeletion(ctx context.Context, delivered bool, result error) error {
	before := meta.FindStatusCondition(p.cluster.Status.Conditions, registration.ConditionDeleting)
	now := metav1.Condition{Type: registration.ConditionDeleting, ObservedGeneration: p.cluster.Generation,
		LastTransitionTime: metav1.NewTime(p.clock.Now())}
	var out *kit.Outcome
	switch {
	case errors.As(result, &out) && out.Reason == registration.ReasonResourceRemaining:
		now.Status, now.Reason, now.Message = metav1.ConditionFalse, registration.ReasonResourceRemaining, kit.Message(out.Message)
	case result != nil && before != nil && !delivered: // the condition about acceptance has the error
		now.Status, now.Reason, now.Message = metav1.ConditionFalse, registration.ReasonResourceRemaining, registration.MessageHubRemains
	case result == nil && before != nil && len(p.cluster.Finalizers) > 1:
		now.Status, now.Reason, now.Message = metav1.ConditionTrue, registration.ReasonNoResource, registration.MessageNoResource
	default:
		return nil
	}
	if before != nil && before.Status == now.Status && before.Reason == now.Reason && before.Message == now.Message {
		return nil
	}
	first := before == nil || before.Reason != now.Reason
	_, err := kit.PatchStatus(ctx, p.client, p.cluster, func(c *clusterv1.ManagedCluster) { meta.SetStatusCondition(&c.Status.Conditions, now) })
	if err != nil {
		// If the cluster has changed or is gone, the next reconciliation reports it.
		return kit.IgnoreStale(err)
	}
	switch {
	case !first || now.Status == metav1.ConditionTrue:
	case delivered:
		p.event(corev1.EventTypeNormal, "ManagedClusterWaitsForAgent", now.Message)
	default:
		p.event(corev1.EventTypeNormal, "ManagedClusterDeletionWaits", now.Message)
	}
	return nil
}

// nextToDelete returns the objects of a kind to delete next: those of the lowest priority. It returns none for a kind that the hub does not have.
func nextToDelete(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string,
) ([]metav1.PartialObjectMetadata, error) {
	var next []metav1.PartialObjectMetadata
	lowest := highestPriority
	err := paging.EachItem(ctx, listIn(reader, kind, namespace), metav1.ListOptions{}, func(object *metav1.PartialObjectMetadata) error {
		p := priority(object)
		if p < lowest {
			lowest, next = p, nil
		}
		if p == lowest {
			object.SetGroupVersionKind(kind)
			next = append(next, *object)
		}
		return nil
	})
	return next, err
}

// listIn returns a function that lists the objects of a kind in a namespace. The list is empty for a kind that the hub does not have.
func listIn(
	reader client.Reader, kind schema.GroupVersionKind, namespace string,
) func(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return func(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := reader.List(ctx, page, client.InNamespace(namespace), client.Limit(options.Limit), client.Continue(options.Continue))
		if meta.IsNoMatchError(err) || kit.IsGone(err) {
			return page, nil
		}
		return page, err
	}
}

// priority returns the cleanup priority of an object: lower ones are deleted sooner. It is 0 without a valid annotation.
func priority(object client.Object) int {
	p, err := strconv.Atoi(object.GetAnnotations()[work.CleanupPriorityAnnotation])
	if err != nil || p < 0 || p > highestPriority {
		return 0
	}
	return p
}
