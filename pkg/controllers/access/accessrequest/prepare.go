// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const reasonPrepared = "Prepared" // the request has all that a provider needs

// phaseOf returns the phase of a request that has a problem. A request that others have labelled gets none, so that no provider considers it
// prepared.
func phaseOf(p *kit.Outcome, access *v1alpha1.AccessRequest) string {
	switch {
	case p.Reason == v1alpha1.ReasonDeniedByPolicy:
		return v1alpha1.REQUEST_DENIED
	case isLabelled(access):
		return ""
	default:
		return v1alpha1.REQUEST_PENDING
	}
}

func isLabelled(access *v1alpha1.AccessRequest) bool {
	return access.Labels[v1alpha1.ProviderLabel] != "" && access.Labels[v1alpha1.ProfileLabel] != ""
}

// notFound returns a problem if an object does not exist.
func notFound(err error, format string, args ...any) error {
	if kit.IsGone(err) {
		return kit.Outcomef(v1alpha1.ReasonInvalidReference, format+" not found", args...)
	}
	return err
}

// label is a label for a request, with a description for messages.
type label struct{ key, what, value string }

// findCluster finds the Cluster that the request names, directly or by a ClusterRequest.
func (p *pass) findCluster(ctx context.Context) error {
	var err error
	if ref := p.access.Spec.ClusterRef; ref != nil {
		p.clusterKey = ref.NamespacedName()
	} else {
		err = p.findClusterRequest(ctx)
	}
	if err != nil {
		return err
	}
	p.cluster = &v1alpha1.Cluster{}
	return notFound(p.client.Get(ctx, p.clusterKey, p.cluster), "referenced Cluster %q", p.clusterKey)
}

// findClusterRequest finds the ClusterRequest that the request names, and its Cluster.
func (p *pass) findClusterRequest(ctx context.Context) error {
	if p.access.Spec.RequestRef == nil {
		return kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "invalid AccessRequest resource %q: neither "+
			"spec.clusterRef nor spec.requestRef is set: set one of them", client.ObjectKeyFromObject(p.access))
	}
	key, request := p.access.Spec.RequestRef.NamespacedName(), &v1alpha1.ClusterRequest{}
	if err := p.client.Get(ctx, key, request); err != nil {
		return notFound(err, "ClusterRequest %q", key)
	}
	cluster := request.Status.Cluster
	switch {
	case !request.DeletionTimestamp.IsZero():
		return kit.Outcomef(v1alpha1.ReasonInvalidReference, "ClusterRequest %q is being deleted", key)
	case !request.Status.IsGranted():
		return kit.Outcomef(v1alpha1.ReasonInvalidReference, "ClusterRequest %q is not granted", key)
	case cluster == nil:
		return kit.Outcomef(v1alpha1.ReasonInternalError, "ClusterRequest %q is granted but does not reference a cluster", key)
	}
	p.clusterKey, p.grantedBy = cluster.NamespacedName(), request
	return nil
}

// checkPolicy checks whether the policy allows the access. A denial is permanent, so the objects that it depends on do not come from a cache.
func (p *pass) checkPolicy(ctx context.Context) error {
	policy := p.policy()
	if !policy.RestrictsAccessRequests() {
		return nil
	}
	namespace, cluster := &corev1.Namespace{}, &v1alpha1.Cluster{}
	if err := p.live.Get(ctx, client.ObjectKey{Name: p.access.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading the namespace of the AccessRequest: %w", err)
	}
	if err := p.live.Get(ctx, p.clusterKey, cluster); err != nil {
		return notFound(err, "referenced Cluster %q", p.clusterKey)
	}
	holders, err := p.holders(ctx, cluster)
	if err != nil {
		return err
	}
	switch allowed, err := policy.AccessRequestAllowed(ctx, p.access, cluster, holders, namespace); {
	case err != nil:
		return &kit.Outcome{Reason: v1alpha1.ReasonConfigurationProblem, Message: err.Error(), Err: err}
	case !allowed:
		// The message for a user who can only name a ClusterRequest does not disclose its Cluster.
		what := fmt.Sprintf("Cluster %q", p.clusterKey)
		if p.access.Spec.ClusterRef == nil {
			what = fmt.Sprintf("Cluster of the ClusterRequest %q", p.access.Spec.RequestRef.NamespacedName())
		}
		return kit.Outcomef(v1alpha1.ReasonDeniedByPolicy, "no rule of the policy allows requests in the namespace %q this access to the %s",
			p.access.Namespace, what)
	}
	return nil
}

// holders returns the ClusterRequests that have a Cluster, as the API server has it. The cache is enough if it has all of them.
func (p *pass) holders(ctx context.Context, cluster *v1alpha1.Cluster) (holders []v1alpha1.ClusterRequest, err error) {
	uids := cluster.GetRequestUIDs()
	for _, from := range []client.Reader{p.client, p.live} {
		all := &v1alpha1.ClusterRequestList{}
		if uids.Len() > 0 {
			err = from.List(ctx, all, client.UnsafeDisableDeepCopy)
		}
		holders = slices.DeleteFunc(all.Items, func(request v1alpha1.ClusterRequest) bool { return !uids.Has(string(request.UID)) })
		if err != nil || len(holders) == uids.Len() {
			break
		}
	}
	return holders, err
}

// findProvider finds the labels that the request needs: the provider of the Cluster, and its profile.
func (p *pass) findProvider(ctx context.Context) error {
	if p.access.Spec.ClusterRef != nil && isLabelled(p.access) {
		return nil
	}
	profile := &v1alpha1.ClusterProfile{}
	if err := p.client.Get(ctx, client.ObjectKey{Name: p.cluster.Spec.Profile}, profile); err != nil {
		return notFound(err, "ClusterProfile %q of the Cluster %q", p.cluster.Spec.Profile, p.clusterKey)
	}
	p.labels = []label{
		{key: v1alpha1.ProviderLabel, what: "provider", value: profile.Spec.ProviderRef.Name},
		{key: v1alpha1.ProfileLabel, what: "profile", value: profile.Name},
	}
	for _, l := range p.labels {
		if is, preset := p.access.Labels[l.key]; preset && is != l.value {
			return kit.Outcomef(v1alpha1.ReasonConfigurationProblem,
				"the label %s is %q, and the Cluster %q has the %s %q: remove the label", l.key, is, p.clusterKey, l.what, l.value)
		}
	}
	return nil
}

// markGranted marks the ClusterRequest by which the request has its Cluster.
func (p *pass) markGranted(ctx context.Context) error {
	if p.grantedBy == nil {
		return nil
	}
	return p.mark(ctx, p.grantedBy)
}

// setCluster sets the Cluster in the request. It is a write of its own: the Cluster's protection lists the requests that name it.
func (p *pass) setCluster(ctx context.Context) error {
	if p.grantedBy == nil {
		return nil
	}
	_, err := kit.Patch(ctx, p.client, p.access, func(a *v1alpha1.AccessRequest) {
		a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: p.clusterKey.Namespace, Name: p.clusterKey.Name}
	})
	return err
}

// protect protects the Cluster from being deleted before the request.
func (p *pass) protect(ctx context.Context) error {
	err := clusterprotection.Protect(ctx, p.live, p.client, p.clusterKey)
	if late := (*clusterprotection.BeingDeletedError)(nil); errors.As(err, &late) {
		return kit.Outcomef(v1alpha1.ReasonWaitingForAccessRequestDeletion, "%s", late.Error())
	}
	return notFound(err, "referenced Cluster %q", p.clusterKey)
}

// reportPrepared reports which provider is responsible.
func (p *pass) reportPrepared(ctx context.Context) error {
	provider := p.access.Labels[v1alpha1.ProviderLabel]
	for _, l := range p.labels {
		if l.key == v1alpha1.ProviderLabel {
			provider = l.value
		}
	}
	return p.report(ctx, v1alpha1.REQUEST_PENDING, &metav1.Condition{
		Status: metav1.ConditionTrue, Reason: reasonPrepared, Message: fmt.Sprintf("the provider %q is responsible", provider),
	})
}

// setLabels sets the labels, which hand the request to its provider.
func (p *pass) setLabels(ctx context.Context) error {
	if len(p.labels) == 0 {
		return nil
	}
	_, err := kit.Patch(ctx, p.client, p.access, func(a *v1alpha1.AccessRequest) {
		for _, l := range p.labels {
			metav1.SetMetaDataLabel(&a.ObjectMeta, l.key, l.value)
		}
	})
	return err
}
