// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// access gives and takes back access to the clusters of the provider, as AccessRequests ask for it.
type access struct {
	identity
	provider clusterprovider.Provider
	client   client.Client
	events   events.EventRecorder
	// live reads what the caches do not have: Secrets, of which a provider sees only those that it knows by name.
	live client.Reader
	// trusting has a lock for each cluster whose OIDC providers are being set.
	trusting sync.Map
	// minters says by endpoint when the ServiceAccount that asks for short-lived tokens was last brought to what it should be.
	minters sync.Map
	// place is whether the hub has a place for token sources.
	place remembered
	// fit are, by the UID of their requests, the names that OIDC providers give which were found fit to be trusted, until the
	// status of the request says so.
	fit sync.Map
	// anyOIDCPrefix trusts OIDC providers whose prefixes do not keep their names apart from others'.
	anyOIDCPrefix bool
	// giving is shared with what takes clusters from their Clusters.
	giving *giving
	// roles are those of each cluster, as last seen.
	roles clusterRoles
	// leftovers hears of the requests that are let go.
	leftovers *leftovers
	// denials are the requests that are never granted any more.
	denials denials
}

func newAccess(own identity, provider clusterprovider.Provider, c client.Client, live client.Reader, recorder events.EventRecorder) *access {
	r := &access{
		identity: own, provider: provider, client: c, live: live, events: recorder, leftovers: newLeftovers(own, provider, c, live),
		giving: &giving{},
	}
	r.leftovers.trust = r.trustAgain
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *access) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ar := &v1alpha1.AccessRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, ar); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if operation(ar) == v1alpha1.OperationAnnotationValueIgnore {
		return reconcile.Result{}, nil
	}
	if err := r.deny(ctx, ar); err != nil {
		return settle(err)
	}
	if err := r.holdAgain(ctx, ar); err != nil {
		return settle(err)
	}
	switch {
	case r.begun(ar) && (!ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied()):
		return r.end(ctx, ar)
	case !ar.DeletionTimestamp.IsZero() || !v1alpha1.IsPrepared(ar):
		return reconcile.Result{}, nil
	case v1alpha1.IsClusterProviderResponsibleForAccessRequest(ar, r.name):
		return r.begin(ctx, ar)
	}
	return reconcile.Result{}, nil
}

// begun is whether the provider has something to take back. Labels say nothing of that: who may write the request may remove them.
func (r *access) begun(ar client.Object) bool {
	return controllerutil.ContainsFinalizer(ar, r.accessFinalizer())
}

// concerns is whether a request can be the provider's.
func (r *access) concerns(ar client.Object) bool {
	return ar.GetLabels()[v1alpha1.ProviderLabel] == r.name || r.begun(ar)
}

// begin gives access, or renews it.
func (r *access) begin(ctx context.Context, ar *v1alpha1.AccessRequest) (reconcile.Result, error) {
	cluster, err := r.clusterOf(ctx, ar)
	if errors.Is(err, errNotOurs) {
		return reconcile.Result{}, nil
	}
	given := func() {}
	if err == nil {
		ok := false
		if given, ok = r.giving.begin(cluster.UID); !ok {
			return reconcile.Result{RequeueAfter: retryInterval}, nil
		}
		defer given()
		err = r.withdrawn(ctx, cluster)
	}
	forced := operation(ar) == v1alpha1.OperationAnnotationValueReconcile
	if known := reasonOf(err, "") != reasonClusterNotHeld; cluster != nil && known && !forced {
		if renewal, ok := r.inPlace(ctx, ar, cluster); ok {
			if err != nil { // nobody can tell at the moment whether it still has the cluster, so nothing is given, and nothing taken
				return reconcile.Result{}, err
			}
			if err := r.followRoles(ctx, ar, cluster); err != nil {
				return settle(err)
			}
			return reconcile.Result{RequeueAfter: nextLook(renewal)}, nil
		}
	}
	var granted *answer
	if err == nil {
		granted, err = r.grant(ctx, ar, cluster)
	}
	if apierrors.IsConflict(err) {
		return settle(err)
	}
	if forced {
		if err := endOperation(ctx, r.client, ar); err != nil {
			return settle(err)
		}
	}
	if reasonOf(err, "") == reasonClusterNotHeld && r.begun(ar) {
		given()
		return r.withdraw(ctx, ar, cluster, err)
	}
	before := ar.DeepCopy()
	forgetTrust(ar, err == nil)
	if err != nil {
		return r.failed(ctx, before, ar, err)
	}
	rememberTrust(ar)
	setCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue, Reason: reasonGranted, Message: granted.message,
	})
	granted.roles.remember(ar)
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, ar.Generation
	ar.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: secretName(ar.Name)}
	if err := r.report(ctx, before, ar); err != nil {
		return settle(err)
	}
	return reconcile.Result{RequeueAfter: nextLook(granted.renewal)}, nil
}

// report writes the status of a request, and tells by an event what became of its access.
func (r *access) report(ctx context.Context, before, ar *v1alpha1.AccessRequest) error {
	if err := patchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	conditionevents.Record(r.events, ar, before.Status.Conditions, ar.Status.Conditions, clusterprovider.ConditionAccess, "GiveAccess")
	r.tellOfRoles(before, ar)
	return nil
}

// nextLook is in how long a request is looked at again that has its access: when that is to be renewed, and after a while, to
// see whether its Secrets are still there. The looks spread out, also after a restart. Zero is never to be renewed.
func nextLook(renewal time.Time) time.Duration {
	look := wait.Jitter(clusterprovider.ResyncInterval, 1)
	if renewal.IsZero() {
		return look
	}
	return max(time.Second, min(look, time.Until(renewal)))
}

// failed says on the request why there is no access. What it waits for is watched; all else is tried again.
func (r *access) failed(ctx context.Context, before, ar *v1alpha1.AccessRequest, failure error) (reconcile.Result, error) {
	reason := reasonOf(failure, reasonClusterError)
	setCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionAccess, Status: metav1.ConditionFalse, Reason: reason, Message: failure.Error(),
	})
	if !ar.Status.IsDenied() && (!ar.DeletionTimestamp.IsZero() || !r.stillValid(ctx, before)) {
		ar.Status.Phase = v1alpha1.REQUEST_PENDING
	}
	ar.Status.ObservedGeneration = ar.Generation
	if err := r.report(ctx, before, ar); err != nil {
		return settle(err)
	}
	if errors.As(failure, &clusterprovider.NotYet{}) {
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	}
	switch reason {
	case reasonClusterNotReady, reasonClusterNotHeld, v1alpha1.ReasonInvalidReference, reasonOIDCNotSupported, reasonOIDCPrefixRefused, reasonOIDCIssuerRefused,
		v1alpha1.ReasonConfigurationProblem:
		ctrl.LoggerFrom(ctx).Info("No access yet", "reason", failure.Error())
		return reconcile.Result{RequeueAfter: clusterprovider.ResyncInterval}, nil
	}
	return reconcile.Result{}, failure
}

// errNotOurs is a cluster of a provider of our name in another environment.
var errNotOurs = errors.New("the cluster is another provider's")

// clusterOf is the Cluster that access is asked for.
func (r *access) clusterOf(ctx context.Context, ar *v1alpha1.AccessRequest) (*v1alpha1.Cluster, error) {
	if ar.Spec.ClusterRef == nil {
		return nil, reasoned{v1alpha1.ReasonInvalidReference, errors.New("spec.clusterRef is not set yet")}
	}
	ref, cluster := ar.Spec.ClusterRef.NamespacedName(), &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, ref, cluster); apierrors.IsNotFound(err) {
		return nil, reasoned{v1alpha1.ReasonInvalidReference, fmt.Errorf("referenced Cluster '%s' not found", ref)}
	} else if err != nil {
		return nil, err
	}
	profile := &v1alpha1.ClusterProfile{}
	err := r.client.Get(ctx, types.NamespacedName{Name: cluster.Spec.Profile}, profile)
	switch {
	case apierrors.IsNotFound(err) && controllerutil.ContainsFinalizer(cluster, r.clusterFinalizer()):
		return cluster, nil
	case apierrors.IsNotFound(err):
		return nil, reasoned{v1alpha1.ReasonInvalidReference, fmt.Errorf("ClusterProfile '%s' not found", cluster.Spec.Profile)}
	case err != nil:
		return nil, err
	case profile.Spec.ProviderRef.Name != r.name:
		return nil, reasoned{v1alpha1.ReasonInvalidReference, fmt.Errorf("the Cluster '%s' is not one of the provider %q", ref, r.name)}
	case !r.responsible(profile):
		return nil, errNotOurs
	}
	return cluster, nil
}

// grant gives the access that is asked for.
func (r *access) grant(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) (*answer, error) {
	name := client.ObjectKeyFromObject(cluster)
	if !cluster.DeletionTimestamp.IsZero() {
		return nil, reasoned{reasonClusterNotReady, fmt.Errorf("the Cluster '%s' is being deleted", name)}
	}
	if cluster.Status.Phase != v1alpha1.StatusPhaseReady {
		return nil, reasoned{reasonClusterNotReady, fmt.Errorf("the Cluster '%s' is not ready: %s", name, whyNotReady(cluster))}
	}
	config, t, err := r.connect(ctx, ar, cluster)
	if err != nil {
		return nil, err
	}
	return r.giveOrTakeBack(ctx, ar, cluster, config, t)
}

// giveOrTakeBack gives the access in a cluster that is reached. Where that is refused for what is asked for now, what the
// request had before is not asked for any more, either.
func (r *access) giveOrTakeBack(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target,
) (*answer, error) {
	given, err := r.give(ctx, ar, cluster, config, t)
	if err != nil {
		if !errors.As(err, &clusterprovider.NotYet{}) { // a cluster that is on its way to trust an issuer is not told otherwise for another request
			r.fit.Delete(ar.UID)
		}
		if lasting(reasonOf(err, "")) && isNew(ar) {
			err = errors.Join(err, r.takeBack(ctx, ar, cluster, t))
		}
	}
	return given, err
}

// give gives the access in a cluster that is reached.
func (r *access) give(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target,
) (*answer, error) {
	if end, ends := endOf(ar); ends && !time.Now().Before(end) {
		return nil, reasoned{v1alpha1.ReasonConfigurationProblem, fmt.Errorf("spec.ttl: the time of the request was over at %s",
			end.UTC().Format(time.RFC3339))}
	}
	if _, ok := r.provider.(clusterprovider.OIDCTruster); ar.Spec.OIDC != nil && !ok {
		return nil, reasoned{reasonOIDCNotSupported, fmt.Errorf("the provider %q does not support spec.oidc: ask for a token", r.name)}
	}
	if err := r.mayAnswer(ctx, ar); err != nil {
		return nil, err
	}
	if err := r.hold(ctx, ar); err != nil {
		return nil, err
	}
	if ar.Spec.OIDC != nil {
		return r.grantOIDC(ctx, ar, cluster, config, t)
	}
	return r.grantToken(ctx, ar, cluster, config, t)
}

// lasting is whether a refusal for this reason stays until somebody changes something.
func lasting(reason string) bool {
	switch reason {
	case reasonNotManaged, reasonOIDCNotSupported, reasonOIDCConflict, reasonOIDCPrefixRefused, reasonOIDCIssuerRefused,
		reasonSecretsForbidden, v1alpha1.ReasonConfigurationProblem:
		return true
	}
	return false
}

// isNew is whether a request has not been granted as it is now.
func isNew(ar *v1alpha1.AccessRequest) bool {
	condition := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	return condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != ar.Generation
}

// hold keeps the request until its access has been taken back.
func (r *access) hold(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	return patch(ctx, r.client, ar, func() { controllerutil.AddFinalizer(ar, r.accessFinalizer()) })
}

// holdAgain holds a request that has access by its status, which others than its owner write: who may write the request may
// have removed the finalizer, with the labels, and would keep the access when it is denied.
func (r *access) holdAgain(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	if !ar.DeletionTimestamp.IsZero() || r.begun(ar) || !mayHaveAccess(ar) {
		return nil
	}
	if _, err := r.clusterOf(ctx, ar); err != nil { // it is another's, or gone
		return nil
	}
	return r.hold(ctx, ar)
}

// mayHaveAccess is whether a request has access by its status, or has had it, and it is not known to be taken back: the condition
// does not say so of access that can be neither renewed nor taken back at the moment.
func mayHaveAccess(ar *v1alpha1.AccessRequest) bool {
	return ar.Status.SecretRef != nil || meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionAccess)
}

func whyNotReady(cluster *v1alpha1.Cluster) string {
	for _, condition := range cluster.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Message != "" {
			return condition.Message
		}
	}
	return "its phase is " + orDefault(cluster.Status.Phase, "not known")
}

// answerTimeout is how long a cluster may take to answer while access to it is given or taken back.
const answerTimeout = 30 * time.Second

// connect is how the cluster of a request is reached.
func (r *access) connect(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster,
) (*rest.Config, *target, error) {
	config, err := r.provider.Connect(ctx, cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the Cluster '%s': %w", client.ObjectKeyFromObject(cluster), err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = answerTimeout
	t, err := newTarget(config, r.accessLabels(ar), r.origin(ar, cluster))
	return config, t, err
}
