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

// seen is all that decides what becomes of an AccessRequest.
type seen struct {
	own hub.Identity
	// trustsOIDC is whether the provider's clusters can trust OIDC issuers.
	trustsOIDC bool
	now        time.Time
	ar         *v1alpha1.AccessRequest
	// denied is whether the request has ever been denied, by what it says or by the provider's own record.
	denied bool
	// cluster is the Cluster that access is asked for; nil, with the reason, if the provider has none for the request.
	cluster   *v1alpha1.Cluster
	noCluster error
	// closer is nil until a decision asks for it.
	closer *closer
}

// closer is what the hub and the provider are asked for, past the caches.
type closer struct {
	// taken is whether the cluster is being taken from its Cluster.
	taken bool
	// withheld is why the Cluster does not have its cluster any more, or why that could not be found out.
	withheld error
	// config is how the cluster is reached, and endpoint its digest; or unreachable is why it is not.
	config      *rest.Config
	endpoint    string
	unreachable error
	// answer is the Secret that answers the request, and source that of its short-lived tokens, if the hub has a place for those.
	answer, source secretSeen
	sources        bool
}

// secretSeen is a Secret, or why there is none.
type secretSeen struct {
	*corev1.Secret
	err error
}

// action is what is done about a request.
type action string

const (
	// leave does nothing.
	leave action = "leave"
	// look asks for what is only seen closer, and decides again.
	look action = "look"
	// wait does nothing for now.
	wait action = "wait"
	// keep leaves access as it is, since it is as it should be.
	keep action = "keep"
	// grant gives access, and renew gives a new token before the old one expires.
	grant action = "grant"
	renew action = "renew"
	// explain says why there is no access, or none anew.
	explain action = "explain"
	// refuse says why what is asked for cannot be given.
	refuse action = "refuse"
	// withdraw takes access back until the Cluster has its cluster again.
	withdraw action = "withdraw"
	// end takes access back for good, and lets the request go.
	end action = "end"
)

// decision is what is done about a request, and why.
type decision struct {
	do action
	// deny and hold are recorded on the request before anything else is done.
	deny, hold bool
	// why is the reason for the decision that the request shows. If the request is kept, it is what could not be found out;
	// if it ends, why nothing of it is in the cluster.
	why error
	// because is why access is given again, for the log.
	because string
	// takeBack is whether something may be in the cluster that has to go.
	takeBack bool
	// forced is whether the request asked for this, by an annotation that has served.
	forced bool
	// again is in how long it is looked again, unless something changes before. 0 with a why is after a while that grows.
	again time.Duration
}

// decide says what is done about a request. It knows no server.
func decide(s *seen) (d decision) {
	ar := s.ar
	if hub.Operation(ar) == v1alpha1.OperationAnnotationValueIgnore {
		return decision{do: leave}
	}
	// A request of another provider is left alone. One that is for no Cluster yet may become any provider's. One that is
	// being deleted has nothing to be kept from, and its phase hands it over.
	d.deny = !s.deleted() && s.denied && (ar.Spec.ClusterRef == nil || s.own.Concerns(ar) || s.noCluster == nil)
	// The author of the request may have removed the finalizer, with the labels, and would keep the access when it is
	// denied. The status is written by others.
	d.hold = !s.deleted() && !s.own.Begun(ar) && answer.MayHaveAccess(ar) && s.noCluster == nil
	denied := ar.Status.IsDenied() || d.deny
	switch {
	case (s.own.Begun(ar) || d.hold) && (s.deleted() || denied):
		return s.ending(d)
	case s.deleted() || denied || !v1alpha1.IsPrepared(ar) || !v1alpha1.IsClusterProviderResponsibleForAccessRequest(ar, s.own.Name):
		d.do = leave
		return d
	}
	return s.giving(d)
}

// ending decides about a request whose access ends for good.
func (s *seen) ending(d decision) decision {
	d.do = end
	said := meta.FindStatusCondition(s.ar.Status.Conditions, clusterprovider.ConditionAccess)
	switch {
	case errors.Is(s.noCluster, errNotOurs) || hub.ReasonOf(s.noCluster, "") == v1alpha1.ReasonInvalidReference:
		d.why = s.noCluster
		return d
	case s.noCluster != nil:
		return d.explain(takingBack(s.noCluster))
	case answer.MayHaveAccess(s.ar) || said == nil || said.Reason != hub.ReasonClusterNotHeld:
	// To end what has been withdrawn, the cluster need not be reached, which may be another's by now. The provider is asked again:
	// the Cluster may have got it back.
	case s.closer == nil:
		d.do = look
		return d
	case s.closer.withheld != nil && says(said, s.closer.withheld):
		d.why = s.closer.withheld
		return d
	}
	d.takeBack = true
	return d
}

// giving decides about a request that asks for access.
func (s *seen) giving(d decision) decision {
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
		d.takeBack = !says(said, c.withheld) || said.ObservedGeneration != s.ar.Generation
		return d
	}
	do, because, renewal := s.inPlace()
	switch name := client.ObjectKeyFromObject(s.cluster); {
	case do == keep && !d.forced:
		// While it is not known whether it still has the cluster, nothing is given, and nothing taken.
		d.do, d.why = keep, c.withheld
		if d.why == nil {
			d.again = nextLook(s.ar, s.now, renewal)
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
	if d.do, d.because = do, because; do == keep {
		d.do, d.because = grant, "it is asked for by an annotation"
	}
	return d
}

// inPlace is whether the access of a request is as it should be, and when it has to be renewed; zero if never.
func (s *seen) inPlace() (do action, because string, renewal time.Time) {
	ar, its := s.ar, s.closer.answer
	switch {
	// The status says what the access was given for. The Secret does not count: its writers could say anything there.
	case !ar.Status.IsGranted() || isNew(ar):
		return grant, "it is not granted as it is now", renewal
	case its.err != nil || !s.own.MadeFor(ar, its.Secret) || len(its.Data[v1alpha1.SecretKeyKubeconfig]) == 0:
		return grant, "its Secret is not there as it was made", renewal
	// An endpoint that has changed makes the kubeconfig useless. While it cannot be told, nothing is better than what is there.
	case s.closer.unreachable == nil && s.closer.endpoint != its.Annotations[answer.EndpointAnnotation]:
		return grant, "the cluster is reached in another way", renewal
	// What earlier versions have granted does not say for which issuer, so its issuer is not among those that the cluster is
	// told to trust.
	case ar.Spec.OIDC != nil && !trust.Holds(ar):
		return grant, "it does not say which issuer is trusted for it", renewal
	case ar.Spec.OIDC != nil:
		return keep, "", renewal
	case s.closer.sources && s.closer.source.err != nil:
		return grant, "its source of short-lived tokens is not there", renewal
	}
	created, expires, ok := answer.Lifetime(its.Secret)
	if !ok || answer.Outlives(ar, s.own.EndOfTokens(its, expires), s.now) {
		return grant, "its token outlives it, or does not say when it expires", renewal
	}
	renewal = answer.RenewalOf(ar, created, expires)
	if !renewal.IsZero() && !s.now.Before(renewal) {
		return renew, "its token expires at " + expires.UTC().Format(time.RFC3339), renewal
	}
	return keep, "", renewal
}

// refused is why a request cannot be given what it asks for, by what can be told without its cluster.
func (s *seen) refused() error {
	if end, ends := answer.EndOf(s.ar); ends && !s.now.Before(end) {
		return hub.Because(v1alpha1.ReasonConfigurationProblem, fmt.Errorf("spec.ttl: the time of the request was over at %s",
			end.UTC().Format(time.RFC3339)))

	}
	if s.ar.Spec.OIDC != nil && !s.trustsOIDC {
		return hub.Because(hub.ReasonOIDCNotSupported, fmt.Errorf("the provider %q does not support spec.oidc: ask for a token", s.own.Name))
	}
	// Before rights are given that could not be used.
	secrets := []secretSeen{s.closer.answer}
	if s.closer.sources {
		secrets = append(secrets, s.closer.source)
	}
	for _, secret := range secrets {
		if client.IgnoreNotFound(secret.err) != nil {
			return secret.err
		}
		if !apierrors.IsNotFound(secret.err) && !s.own.MadeFor(s.ar, secret.Secret) {
			return answer.NotManaged(secret.Secret)
		}
	}
	return nil
}

// stillValid is whether an access that could not be renewed can be used.
func (s *seen) stillValid() bool {
	given := meta.FindStatusCondition(s.ar.Status.Conditions, clusterprovider.ConditionAccess)
	if !s.ar.Status.IsGranted() || given == nil || given.ObservedGeneration != s.ar.Generation || s.closer == nil {
		return false
	}
	its := s.closer.answer
	if its.Secret == nil || its.err != nil {
		return false
	}
	_, expires, ok := answer.Lifetime(its.Secret)
	return s.own.MadeFor(s.ar, its.Secret) && (s.ar.Spec.OIDC != nil || ok && s.now.Before(expires))
}

func (s *seen) deleted() bool { return !s.ar.DeletionTimestamp.IsZero() }

// explain says why there is no access. What it waits for is watched; all else is tried again.
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

// refuse says why what is asked for cannot be given. Where that lasts until a user changes something, the request loses what
// it had before, too.
func (d decision) refuse(ar *v1alpha1.AccessRequest, why error) decision {
	d = d.explain(why)
	d.do = refuse
	switch hub.ReasonOf(why, "") {
	case hub.ReasonNotManaged, hub.ReasonOIDCNotSupported, hub.ReasonOIDCConflict, hub.ReasonOIDCPrefixRefused, hub.ReasonOIDCIssuerRefused,
		hub.ReasonSecretsForbidden, v1alpha1.ReasonConfigurationProblem:
		d.takeBack = isNew(ar)
	}
	return d
}

// alsoFailed says, too, that what the request had could not be taken back. That is tried again soon.
func (d decision) alsoFailed(failure error) decision {
	d.why, d.again = errors.Join(d.why, failure), 0
	if errors.As(failure, &clusterprovider.NotYet{}) {
		d.again = hub.RetryInterval
	}
	return d
}

// takingBack is a failure to take access back.
func takingBack(failure error) error { return fmt.Errorf("taking access back: %w", failure) }

// isNew is whether a request has not been granted as it is now.
func isNew(ar *v1alpha1.AccessRequest) bool {
	given := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	return given == nil || given.Status != metav1.ConditionTrue || given.ObservedGeneration != ar.Generation
}

// says is whether a condition says without a failure why a Cluster does not have its cluster: then no access is left to take back.
func says(said *metav1.Condition, why error) bool {
	return said != nil && said.Reason == hub.ReasonClusterNotHeld && said.Message == why.Error()
}

func whyNotReady(cluster *v1alpha1.Cluster) string {
	for _, condition := range cluster.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Message != "" {
			return condition.Message
		}
	}
	return "its phase is " + cmp.Or(cluster.Status.Phase, "not known")
}

// nextLook is in how long a request is looked at again that has its access: when that is to be renewed, and after a while, to
// see whether its Secrets are still there. The looks spread out, also after a restart. Zero is never to be renewed.
func nextLook(ar *v1alpha1.AccessRequest, now, renewal time.Time) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, now.UnixNano(), ar.UID) // never fails
	look := clusterprovider.ResyncInterval + time.Duration(float64(clusterprovider.ResyncInterval)*float64(h.Sum32())/(1<<32))
	if renewal.IsZero() {
		return look
	}
	return max(time.Second, min(look, renewal.Sub(now)))
}
