// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
)

// observation has everything on which the decision about an AccessRequest is based.
type observation struct {
	own hub.Identity
	// trustsOIDC reports whether the provider's clusters can trust OIDC issuers.
	trustsOIDC bool
	now        time.Time
	ar         *v1alpha1.AccessRequest
	// denied reports whether the request has ever been denied, by its status or by the provider's own record.
	denied bool
	// cluster is the Cluster to which access is requested. It is nil, and noCluster has the reason, if the provider has none for the request.
	cluster   *v1alpha1.Cluster
	noCluster error
	// closer is nil until a decision needs it.
	closer *closer
}

// closer has what is read from the hub and the provider without caches.
type closer struct {
	// taken reports whether the cluster is being withdrawn from its Cluster.
	taken bool
	// withheld is why the Cluster no longer has its cluster, or why that could not be determined.
	withheld error
	// config is the configuration to connect to the cluster, and endpoint its digest; or unreachable is why there is no connection.
	config      *rest.Config
	endpoint    string
	unreachable error
	// answer is the Secret with the access of the request, and source the one for its short-lived tokens, if the hub has a namespace for those.
	answer, source secretSeen
	sources        bool
}

// secretSeen is a Secret, or the error of reading it.
type secretSeen struct {
	*corev1.Secret
	err error
}

// action names what the Reconciler does for a request.
type action string

const (
	// leave does nothing.
	leave action = "leave"
	// look reads further facts without the caches, and decides again.
	look action = "look"
	// wait does nothing for now.
	wait action = "wait"
	// keep leaves access as it is, since it is as desired.
	keep action = "keep"
	// grant grants access, and renew issues a new token before the old one expires.
	grant action = "grant"
	renew action = "renew"
	// explain reports why no access, or no new one, is granted.
	explain action = "explain"
	// refuse reports why what is requested cannot be granted.
	refuse action = "refuse"
	// withdraw revokes access until the Cluster has its cluster again.
	withdraw action = "withdraw"
	// end revokes access for good, and removes the finalizer of the request.
	end action = "end"
)

// decision has the action for a request, and its reason.
type decision struct {
	do action
	// deny and hold are recorded on the request before anything else is done.
	deny, hold bool
	// why is the reason for the decision that the request shows. If the request is kept, it describes what could not be determined; if it ends, why
	// nothing of it is in the cluster.
	why error
	// because is why access is granted again, for the log.
	because string
	// mustRevoke is whether the cluster may have objects that must be deleted.
	mustRevoke bool
	// forced reports whether an annotation of the request requests this, which can be removed.
	forced bool
	// again is the time until the next reconcile, unless something changes before. 0 with a why means a growing delay.
	again time.Duration
}

// decide returns the decision about a request. It sends no requests.
func decide(s *observation) (d decision) {
	ar := s.ar
	if hub.Operation(ar) == v1alpha1.OperationAnnotationValueIgnore {
		return decision{do: leave}
	}
	// A request of another provider is ignored. A request without a Cluster may still become any provider's. A request that is being deleted needs no
	// record of its denial, and its phase hands it over.
	d.deny = !s.deleted() && s.denied && (ar.Spec.ClusterRef == nil || s.own.Concerns(ar) || s.noCluster == nil)
	// The author of the request may have removed the finalizer, with the labels, and would keep the access when it is denied. The author cannot write
	// the status.
	d.hold = !s.deleted() && !s.own.Begun(ar) && answer.MayHaveAccess(ar) && s.noCluster == nil
	denied := ar.Status.IsDenied() || d.deny
	switch {
	case (s.own.Begun(ar) || d.hold) && (s.deleted() || denied):
		return s.decideRevocation(d)
	case s.deleted() || denied || !v1alpha1.IsPrepared(ar) || !v1alpha1.IsClusterProviderResponsibleForAccessRequest(ar, s.own.Name):
		d.do = leave
		return d
	}
	return s.decideGrant(d)
}

// decideRevocation decides about a request whose access ends for good.
func (s *observation) decideRevocation(d decision) decision {
	d.do = end
	said := meta.FindStatusCondition(s.ar.Status.Conditions, clusterprovider.ConditionAccess)
	switch {
	case errors.Is(s.noCluster, errNotOurs) || hub.ReasonOf(s.noCluster, "") == v1alpha1.ReasonInvalidReference:
		d.why = s.noCluster
		return d
	case s.noCluster != nil:
		return d.explain(revokeError(s.noCluster))
	case answer.MayHaveAccess(s.ar) || said == nil || said.Reason != hub.ReasonClusterNotHeld:
	// To end what has been withdrawn, the cluster need not be reached, which may belong to another Cluster. The provider is called again: the Cluster
	// may have got it back.
	case s.closer == nil:
		d.do = look
		return d
	case s.closer.withheld != nil && hasReason(said, s.closer.withheld):
		d.why = s.closer.withheld
		return d
	}
	d.mustRevoke = true
	return d
}

// decideGrant decides about a request for access.
func (s *observation) decideGrant(d decision) decision {
	c := s.closer
	switch {
	case errors.Is(s.noCluster, errNotOurs):
		d.do = leave
		return d
	case c == nil:
		d.do = look
		return d
	case c.taken:
		d.do, d.again = wait, hub.RetryInterval
		return d
	}
	d.forced = hub.Operation(s.ar) == v1alpha1.OperationAnnotationValueReconcile
	if s.noCluster != nil {
		return d.explain(s.noCluster)
	}
	if hub.ReasonOf(c.withheld, "") == hub.ReasonClusterNotHeld {
		if !s.own.Begun(s.ar) {
			return d.explain(c.withheld)
		}
		said := meta.FindStatusCondition(s.ar.Status.Conditions, clusterprovider.ConditionAccess)
		d.do, d.why, d.again = withdraw, c.withheld, clusterprovider.ResyncInterval
		d.mustRevoke = !hasReason(said, c.withheld) || said.ObservedGeneration != s.ar.Generation
		return d
	}
	do, because, renewal := s.inPlace()
	switch name := client.ObjectKeyFromObject(s.cluster); {
	case do == keep && !d.forced:
		// While it is unknown whether the Cluster still has the cluster, nothing is granted, and nothing revoked.
		d.do, d.why = keep, c.withheld
		if d.why == nil {
			d.again = nextCheck(s.ar, s.now, renewal)
		}
		return d
	case c.withheld != nil:
		return d.explain(c.withheld)
	case !s.cluster.DeletionTimestamp.IsZero():
		return d.explain(hub.Because(hub.ReasonClusterNotReady, fmt.Errorf("the Cluster '%s' is being deleted", name)))
	case s.cluster.Status.Phase != v1alpha1.StatusPhaseReady:
		return d.explain(hub.Because(hub.ReasonClusterNotReady, fmt.Errorf("the Cluster '%s' is not ready: %s", name, whyNotReady(s.cluster))))
	case c.unreachable != nil:
		return d.explain(c.unreachable)
	}
	if err := s.refused(); err != nil {
		return d.refuse(s.ar, err)
	}
	d.do, d.because = do, because
	if do == keep {
		d.do, d.because = grant, "an annotation requests it"
	}
	return d
}

// inPlace reports whether the access of a request is as desired, and when it must be renewed; zero if never.
func (s *observation) inPlace() (do action, because string, renewal time.Time) {
	ar, its := s.ar, s.closer.answer
	switch {
	// The status has what the access was granted for. The Secret does not count: its writers could write anything there.
	case !ar.Status.IsGranted() || isNew(ar):
		return grant, "its current spec has not been granted", renewal
	case its.err != nil || !s.own.CreatedFor(ar, its.Secret) || len(its.Data[v1alpha1.SecretKeyKubeconfig]) == 0:
		return grant, "its Secret is missing or was changed", renewal
	// A changed endpoint makes the kubeconfig useless. While the endpoint is unknown, the existing one is the best.
	case s.closer.unreachable == nil && s.closer.endpoint != its.Annotations[answer.EndpointAnnotation]:
		return grant, "the endpoint of the cluster changed", renewal
	// Earlier versions did not record the issuer of a grant, so the issuer is not among those that the cluster trusts.
	case ar.Spec.OIDC != nil && !trust.Holds(ar):
		return grant, "its status does not record the trusted issuer", renewal
	case ar.Spec.OIDC != nil:
		return keep, "", renewal
	case s.closer.sources && s.closer.source.err != nil:
		return grant, "its source of short-lived tokens is missing or was changed", renewal
	}
	created, expires, ok := answer.Lifetime(its.Secret)
	if !ok || answer.Outlives(ar, s.own.TokensExpire(its, expires), s.now) {
		return grant, "its token outlives the request, or has no expiration time", renewal
	}
	renewal = answer.RenewalOf(ar, created, expires)
	if !renewal.IsZero() && !s.now.Before(renewal) {
		return renew, "its token expires at " + expires.UTC().Format(time.RFC3339), renewal
	}
	return keep, "", renewal
}

// refused returns why a request cannot be granted, as far as that is known without its cluster.
func (s *observation) refused() error {
	if end, ends := answer.DeletionTime(s.ar); ends && !s.now.Before(end) {
		return hub.Because(v1alpha1.ReasonConfigurationProblem, fmt.Errorf("spec.ttl: the request expired at %s",
			end.UTC().Format(time.RFC3339)))

	}
	if s.ar.Spec.OIDC != nil && !s.trustsOIDC {
		return hub.Because(hub.ReasonOIDCNotSupported, fmt.Errorf("the provider %q does not support spec.oidc: request a token", s.own.Name))
	}
	// Before rights are granted that could not be used.
	secrets := []secretSeen{s.closer.answer}
	if s.closer.sources {
		secrets = append(secrets, s.closer.source)
	}
	for _, secret := range secrets {
		if client.IgnoreNotFound(secret.err) != nil {
			return secret.err
		}
		if !apierrors.IsNotFound(secret.err) && !s.own.CreatedFor(s.ar, secret.Secret) {
			return answer.NotManaged(secret.Secret)
		}
	}
	return nil
}

// stillValid reports whether access that could not be renewed can be used.
func (s *observation) stillValid() bool {
	given := meta.FindStatusCondition(s.ar.Status.Conditions, clusterprovider.ConditionAccess)
	if !s.ar.Status.IsGranted() || given == nil || given.ObservedGeneration != s.ar.Generation || s.closer == nil {
		return false
	}
	its := s.closer.answer
	if its.Secret == nil || its.err != nil {
		return false
	}
	_, expires, ok := answer.Lifetime(its.Secret)
	return s.own.CreatedFor(s.ar, its.Secret) && (s.ar.Spec.OIDC != nil || ok && s.now.Before(expires))
}

func (s *observation) deleted() bool { return !s.ar.DeletionTimestamp.IsZero() }

// explain sets the reason why no access is granted. What it waits for is watched; everything else is retried.
func (d decision) explain(why error) decision {
	d.do, d.why, d.again = explain, why, 0
	switch hub.ReasonOf(why, "") {
	case hub.ReasonClusterNotReady, hub.ReasonClusterNotHeld, v1alpha1.ReasonInvalidReference, hub.ReasonOIDCNotSupported, hub.ReasonOIDCPrefixRefused,
		hub.ReasonOIDCIssuerRefused, v1alpha1.ReasonConfigurationProblem:
		d.again = clusterprovider.ResyncInterval
	}
	if errors.As(why, &clusterprovider.NotYet{}) {
		d.again = hub.RetryInterval
	}
	return d
}

// refuse sets the reason why a request cannot be granted. If that lasts until a user changes something, the request also loses the access that it
// had.
func (d decision) refuse(ar *v1alpha1.AccessRequest, why error) decision {
	d = d.explain(why)
	d.do = refuse
	switch hub.ReasonOf(why, "") {
	case hub.ReasonNotManaged, hub.ReasonOIDCNotSupported, hub.ReasonOIDCConflict, hub.ReasonOIDCPrefixRefused, hub.ReasonOIDCIssuerRefused,
		hub.ReasonSecretsForbidden, v1alpha1.ReasonConfigurationProblem:
		d.mustRevoke = isNew(ar)
	}
	return d
}

// alsoFailed adds that previous access could not be revoked. That is retried soon.
func (d decision) alsoFailed(failure error) decision {
	d.why, d.again = errors.Join(d.why, failure), 0
	if errors.As(failure, &clusterprovider.NotYet{}) {
		d.again = hub.RetryInterval
	}
	return d
}

// revokeError wraps an error of revoking access.
func revokeError(failure error) error { return fmt.Errorf("revoking access: %w", failure) }

// isNew reports whether the current generation of a request has not been granted.
func isNew(ar *v1alpha1.AccessRequest) bool {
	given := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	return given == nil || given.Status != metav1.ConditionTrue || given.ObservedGeneration != ar.Generation
}

// hasReason reports whether a condition has the reason why a Cluster does not have its cluster, without a failure: then no access remains to revoke.
func hasReason(said *metav1.Condition, why error) bool {
	return said != nil && said.Reason == hub.ReasonClusterNotHeld && said.Message == why.Error()
}

func whyNotReady(cluster *v1alpha1.Cluster) string {
	for _, condition := range cluster.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Message != "" {
			return condition.Message
		}
	}
	return "its phase is " + cmp.Or(cluster.Status.Phase, "unknown")
}

// nextCheck returns the time until the next reconcile of a request with access: when it must be renewed, or after a while, to check that its Secrets
// still exist. The checks are spread out, also after a restart. A zero renewal means never.
func nextCheck(ar *v1alpha1.AccessRequest, now, renewal time.Time) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, now.UnixNano(), ar.UID) // never fails
	look := clusterprovider.ResyncInterval + time.Duration(float64(clusterprovider.ResyncInterval)*float64(h.Sum32())/(1<<32))
	if renewal.IsZero() {
		return look
	}
	return max(time.Second, min(look, renewal.Sub(now)))
}
