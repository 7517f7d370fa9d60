// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
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

// prepare sets all that a provider needs to act on a request, or reports on the request what is missing.
//
// A provider acts on a request that is Pending and has its labels. So the Cluster is protected first, then the status is written, then the labels,
// each by a write of its own. After any of them the next try does the rest, and no provider acts too early. If others have set the labels, the
// status comes last, and hands the request over.
func (r *Reconciler) prepare(ctx context.Context, access *v1alpha1.AccessRequest) error {
	if !access.DeletionTimestamp.IsZero() {
		// Its provider revokes the access, whatever the state of the Cluster.
		return r.report(ctx, access, v1alpha1.REQUEST_PENDING, nil)
	}
	labels, err := r.assign(ctx, access)
	why := &kit.Outcome{}
	switch {
	case errors.As(err, &why):
		condition := &metav1.Condition{Status: metav1.ConditionFalse, Reason: why.Reason, Message: why.Message}
		return errors.Join(r.report(ctx, access, phaseOf(why, access), condition), why.Err)
	case err != nil:
		return err
	}
	err = r.report(ctx, access, v1alpha1.REQUEST_PENDING, &metav1.Condition{
		Status: metav1.ConditionTrue, Reason: reasonPrepared,
		Message: fmt.Sprintf("the provider %q is responsible", responsible(access, labels)),
	})
	if err != nil || len(labels) == 0 {
		return err
	}
	_, err = kit.Patch(ctx, r.client, access, func(a *v1alpha1.AccessRequest) {
		for _, l := range labels {
			metav1.SetMetaDataLabel(&a.ObjectMeta, l.key, l.value)
		}
	})
	return err
}

// assign finds the Cluster of a request, sets it in the request, and protects it. It returns the labels that the request needs, or none if it has
// all.
func (r *Reconciler) assign(ctx context.Context, access *v1alpha1.AccessRequest) ([]label, error) {
	key, by, err := r.cluster(ctx, access)
	if err != nil {
		return nil, err
	}
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return nil, notFound(err, "referenced Cluster %q", key)
	}
	if err := r.ask(ctx, access, key); err != nil {
		return nil, err
	}
	if access.Spec.ClusterRef != nil && isLabelled(access) {
		return nil, r.protect(ctx, key)
	}
	profile := &v1alpha1.ClusterProfile{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile); err != nil {
		return nil, notFound(err, "ClusterProfile %q of the Cluster %q", cluster.Spec.Profile, key)
	}
	labels := []label{
		{key: v1alpha1.ProviderLabel, what: "provider", value: profile.Spec.ProviderRef.Name},
		{key: v1alpha1.ProfileLabel, what: "profile", value: profile.Name},
	}
	for _, l := range labels {
		if is, preset := access.Labels[l.key]; preset && is != l.value {
			return nil, kit.Outcomef(v1alpha1.ReasonConfigurationProblem,
				"the label %s is %q, and the Cluster %q has the %s %q: remove the label", l.key, is, key, l.what, l.value)
		}
	}
	if by != nil {
		if err := r.mark(ctx, access, by); err != nil {
			return nil, err
		}
		// A write of its own: the Cluster's protection looks for requests that name it.
		_, err := kit.Patch(ctx, r.client, access, func(a *v1alpha1.AccessRequest) {
			a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: key.Namespace, Name: key.Name}
		})
		if err != nil {
			return nil, err
		}
	}
	return labels, r.protect(ctx, key)
}

// cluster returns the Cluster that a request names, directly or by a ClusterRequest. In the second case it also returns the ClusterRequest.
func (r *Reconciler) cluster(ctx context.Context, access *v1alpha1.AccessRequest) (client.ObjectKey, *v1alpha1.ClusterRequest, error) {
	none := client.ObjectKey{}
	if ref := access.Spec.ClusterRef; ref != nil {
		return ref.NamespacedName(), nil, nil
	}
	if access.Spec.RequestRef == nil {
		return none, nil, kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "invalid AccessRequest resource %q: neither "+
			"spec.clusterRef nor spec.requestRef is set: set one of them", client.ObjectKeyFromObject(access))
	}
	key, request := access.Spec.RequestRef.NamespacedName(), &v1alpha1.ClusterRequest{}
	if err := r.client.Get(ctx, key, request); err != nil {
		return none, nil, notFound(err, "ClusterRequest %q", key)
	}
	switch cluster := request.Status.Cluster; {
	case !request.DeletionTimestamp.IsZero():
		return none, nil, kit.Outcomef(v1alpha1.ReasonInvalidReference, "ClusterRequest %q is being deleted", key)
	case !request.Status.IsGranted():
		return none, nil, kit.Outcomef(v1alpha1.ReasonInvalidReference, "ClusterRequest %q is not granted", key)
	case cluster == nil:
		return none, nil, kit.Outcomef(v1alpha1.ReasonInternalError,
			"ClusterRequest %q is granted but does not reference a cluster", key)
	default:
		return cluster.NamespacedName(), request, nil
	}
}

// ask checks the policy. A denial is permanent, so the objects that it depends on do not come from a cache.
func (r *Reconciler) ask(ctx context.Context, access *v1alpha1.AccessRequest, key client.ObjectKey) error {
	policy := r.policy()
	if !policy.RestrictsAccessRequests() {
		return nil
	}
	namespace, cluster := &corev1.Namespace{}, &v1alpha1.Cluster{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: access.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading the namespace of the AccessRequest: %w", err)
	}
	if err := r.live.Get(ctx, key, cluster); err != nil {
		return notFound(err, "referenced Cluster %q", key)
	}
	holders, err := r.holders(ctx, cluster)
	if err != nil {
		return err
	}
	switch allowed, err := policy.AccessRequestAllowed(ctx, access, cluster, holders, namespace); {
	case err != nil:
		return &kit.Outcome{Reason: v1alpha1.ReasonConfigurationProblem, Message: err.Error(), Err: err}
	case !allowed:
		// The message for a user who can only name a ClusterRequest does not disclose its Cluster.
		what := fmt.Sprintf("Cluster %q", key)
		if access.Spec.ClusterRef == nil {
			what = fmt.Sprintf("Cluster of the ClusterRequest %q", access.Spec.RequestRef.NamespacedName())
		}
		return kit.Outcomef(v1alpha1.ReasonDeniedByPolicy, "no rule of the policy allows requests in the namespace %q this access to the %s",
			access.Namespace, what)
	}
	return nil
}

// holders returns the ClusterRequests that have a Cluster. The cache is enough if it has all of them.
func (r *Reconciler) holders(ctx context.Context, cluster *v1alpha1.Cluster) (holders []v1alpha1.ClusterRequest, err error) {
	uids := cluster.GetRequestUIDs()
	for _, from := range []client.Reader{r.client, r.live} {
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

func (r *Reconciler) protect(ctx context.Context, cluster client.ObjectKey) error {
	err := clusterprotection.Protect(ctx, r.live, r.client, cluster)
	if late := (*clusterprotection.BeingDeletedError)(nil); errors.As(err, &late) {
		return kit.Outcomef(v1alpha1.ReasonWaitingForAccessRequestDeletion, "%s", late.Error())
	}
	return notFound(err, "referenced Cluster %q", cluster)
}

// report sets the phase of the request, for its current generation, and a condition unless that is nil.
func (r *Reconciler) report(ctx context.Context, access *v1alpha1.AccessRequest, phase string, condition *metav1.Condition) error {
	before := access.Status.Conditions
	changed, err := kit.PatchStatus(ctx, r.client, access, func(a *v1alpha1.AccessRequest) {
		a.Status.Phase, a.Status.ObservedGeneration = phase, a.Generation
		if condition != nil {
			condition.Type, condition.ObservedGeneration = v1alpha1.ConditionPrepared, a.Generation
			meta.SetStatusCondition(&a.Status.Conditions, *condition)
		}
	})
	if err != nil || !changed {
		return err
	}
	conditionevents.Record(r.recorder, access, before, access.Status.Conditions, v1alpha1.ConditionPrepared, actionPrepare)
	return nil
}

func responsible(access *v1alpha1.AccessRequest, labels []label) string {
	for _, l := range labels {
		if l.key == v1alpha1.ProviderLabel {
			return l.value
		}
	}
	return access.Labels[v1alpha1.ProviderLabel]
}
