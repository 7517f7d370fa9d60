// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// Access by a ClusterRequest ends with it. A condition of the AccessRequest has the ClusterRequest: its type is the finalizer of the ClusterRequest
// on its Cluster. That includes the UID, so a new ClusterRequest of the same name is a different one. Requesters can write neither the condition
// nor the finalizer. The condition is written before clusterRef is set, so that no request names a Cluster by a ClusterRequest without it.

const reasonByClusterRequest = "ClusterRequestGranted" // access came by a ClusterRequest, and ends with it

// markOf returns the type of the condition with the ClusterRequest by which a request has its Cluster, or "".
func markOf(access *v1alpha1.AccessRequest) string {
	for _, condition := range access.Status.Conditions {
		if strings.HasPrefix(condition.Type, v1alpha1.RequestFinalizerOnClusterPrefix) {
			return condition.Type
		}
	}
	return ""
}

// mark sets the condition for the ClusterRequest by which the request has its Cluster, and removes those for others.
func (p *pass) mark(ctx context.Context, request *v1alpha1.ClusterRequest) error {
	_, err := kit.PatchStatus(ctx, p.client, p.access, func(a *v1alpha1.AccessRequest) {
		a.Status.Conditions = slices.DeleteFunc(a.Status.Conditions, func(c metav1.Condition) bool {
			return strings.HasPrefix(c.Type, v1alpha1.RequestFinalizerOnClusterPrefix) && c.Type != request.FinalizerForCluster()
		})
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: request.FinalizerForCluster(), Status: metav1.ConditionTrue, Reason: reasonByClusterRequest,
			Message:            fmt.Sprintf("the access comes from the ClusterRequest %q, and ends with it", client.ObjectKeyFromObject(request)),
			ObservedGeneration: a.Generation,
		})
	})
	return err
}

// deleteLapsed deletes a request whose ClusterRequest does not give access any more. Its provider revokes the access. A denial would be wrong: it is
// permanent, and programs that request access again expect to be able to do so.
func (p *pass) deleteLapsed(ctx context.Context) error {
	if p.access.Spec.RequestRef == nil || p.access.Spec.ClusterRef == nil || !p.access.DeletionTimestamp.IsZero() {
		return nil
	}
	mark := markOf(p.access)
	if mark == "" {
		return p.markLate(ctx)
	}
	var why string
	for _, from := range []client.Reader{p.client, p.live} { // the cache may be stale, and a deletion cannot be undone
		var err error
		why, err = p.lapseReason(ctx, from, mark)
		if err != nil || why == "" {
			return err
		}
	}
	return p.delete(ctx, why)
}

// markLate marks a request that was prepared by a program that sets no marks. If its ClusterRequest is gone, or has a different Cluster, the
// request gets no mark: its author has named the Cluster.
func (p *pass) markLate(ctx context.Context) error {
	request := &v1alpha1.ClusterRequest{}
	if err := p.client.Get(ctx, p.access.Spec.RequestRef.NamespacedName(), request); err != nil {
		return kit.IgnoreGone(err)
	}
	if !request.DeletionTimestamp.IsZero() || !request.Status.IsGranted() || request.Status.Cluster == nil ||
		*request.Status.Cluster != *p.access.Spec.ClusterRef {
		return nil
	}
	return p.mark(ctx, request)
}

// lapseReason returns why the ClusterRequest of a mark does not give access to the Cluster of the request any more, or "" if it does.
func (p *pass) lapseReason(ctx context.Context, from client.Reader, mark string) (string, error) {
	key, request := p.access.Spec.RequestRef.NamespacedName(), &v1alpha1.ClusterRequest{}
	if err := from.Get(ctx, key, request); kit.IsGone(err) {
		return fmt.Sprintf("the ClusterRequest %q is gone", key), nil
	} else if err != nil {
		return "", err
	}
	has := request.Status.Cluster
	switch {
	case request.FinalizerForCluster() != mark:
		return fmt.Sprintf("the ClusterRequest %q was deleted and created again", key), nil
	case !request.DeletionTimestamp.IsZero():
		return fmt.Sprintf("the ClusterRequest %q is being deleted", key), nil
	case request.Status.IsDenied():
		return fmt.Sprintf("the ClusterRequest %q is denied", key), nil
	case has != nil && *has != *p.access.Spec.ClusterRef:
		return fmt.Sprintf("the ClusterRequest %q has another Cluster", key), nil
	case has != nil && request.Status.IsGranted():
		return "", nil
	}
	// The ClusterRequest is pending again, as after a temporary error, or its status is lost. The Cluster shows whether the ClusterRequest has it.
	cluster := &v1alpha1.Cluster{}
	if err := from.Get(ctx, p.access.Spec.ClusterRef.NamespacedName(), cluster); err != nil {
		return "", kit.IgnoreGone(err) // without the Cluster there is no access, and it may be created again
	}
	if slices.Contains(cluster.Finalizers, mark) {
		return "", nil
	}
	return fmt.Sprintf("the ClusterRequest %q no longer has the Cluster", key), nil
}
