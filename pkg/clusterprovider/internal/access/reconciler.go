// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access grants access to the clusters of a provider, as AccessRequests request it, and revokes it: decide decides what is done about a
// request, and the Reconciler does it.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/leftovers"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Reconciler reconciles AccessRequests: it grants and revokes access to the clusters of the provider.
type Reconciler struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	// issuers are the issuers that clusters trust.
	issuers *trust.Issuers
	// minters request short-lived tokens.
	minters target.Minters
	// answers are written to the hub.
	answers *answer.Answers
	// Giving is shared with the code that withdraws clusters from their Clusters.
	Giving *granting
	// roles are those of each cluster, as last observed.
	roles target.Roles
	// Leftovers is notified of the requests whose finalizer is removed.
	Leftovers *leftovers.Leftovers
	// denials are the requests that must never be granted again.
	denials denials
	// reach returns a cluster in which the objects of a request can be changed.
	reach func(*rest.Config, *v1alpha1.AccessRequest, *v1alpha1.Cluster) (*target.Target, error)
}

// New returns a reconciler that has granted no access yet.
func New(own hub.Identity, provider clusterprovider.Provider, c client.Client, live client.Reader, recorder events.EventRecorder) *Reconciler {
	r := &Reconciler{
		Identity: own, provider: provider, client: c, Leftovers: leftovers.New(own, provider, c, live),
		Giving: &granting{}, issuers: trust.New(own, provider, c), answers: answer.New(own, c, live, recorder),
	}
	r.Leftovers.Trust, r.reach = r.issuers.Again, r.targetOf
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ar := &v1alpha1.AccessRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, ar); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s := r.observe(ctx, ar)
	d := decide(s)
	if err := r.record(ctx, ar, d); err != nil {
		return hub.ResultOf(err)
	}
	done := func() {}
	if d.do == look {
		done = r.readMore(ctx, s)
		defer done()
		d = decide(s)
	}
	switch d.do {
	case keep:
		if d.why != nil {
			return reconcile.Result{}, d.why
		}
		if err := r.followRoles(ctx, s); err != nil {
			return hub.ResultOf(err)
		}
	case grant, renew, explain, refuse:
		return r.reply(ctx, s, d)
	case withdraw:
		done()
		return r.withdraw(ctx, s, d)
	case end:
		return r.finalize(ctx, s, d)
	}
	return reconcile.Result{RequeueAfter: d.again}, nil
}

// observe reads a request from the caches, and the provider's own record.
func (r *Reconciler) observe(ctx context.Context, ar *v1alpha1.AccessRequest) *observation {
	_, trusts := r.provider.(clusterprovider.OIDCTruster)
	s := &observation{own: r.Identity, trustsOIDC: trusts, now: time.Now(), ar: ar, denied: r.denials.has(ar)}
	s.cluster, s.noCluster = r.clusterOf(ctx, ar)
	return s
}

// readMore reads from the hub and the provider. Until the returned function is called, the cluster is not withdrawn from its Cluster.
func (r *Reconciler) readMore(ctx context.Context, s *observation) (done func()) {
	c := &closer{}
	s.closer, done = c, func() {}
	ends := s.deleted() || s.ar.Status.IsDenied()
	if s.cluster != nil {
		if !ends {
			given, ok := r.Giving.Begin(s.cluster.UID)
			c.taken = !ok
			if c.taken {
				return done
			}
			done = given
		}
		c.withheld = notHeldError(ctx, r.provider, s.cluster)
	}
	ready := s.cluster != nil && s.cluster.Status.Phase == v1alpha1.StatusPhaseReady
	if ends || !ready && !s.ar.Status.IsGranted() {
		return done
	}
	if s.cluster != nil {
		c.config, c.unreachable = r.connect(ctx, s.cluster)
		if c.unreachable == nil {
			c.endpoint = answer.EndpointDigest(c.config)
		}
	}
	c.answer.Secret, c.answer.err = r.answers.Secret(ctx, hub.AnswerName(s.ar))
	c.sources = r.answers.Sources(ctx)
	if c.sources {
		c.source.Secret, c.source.err = r.answers.Secret(ctx, hub.TokenSourceName(s.ar))
	}
	return done
}

// record writes a decision to the request, before anything is done.
func (r *Reconciler) record(ctx context.Context, ar *v1alpha1.AccessRequest, d decision) error {
	if d.deny {
		if err := r.denials.record(ctx, r.client, ar); err != nil {
			return err
		}
	}
	if d.hold {
		return r.addFinalizer(ctx, ar)
	}
	return nil
}

// reply grants access, or does not, and reports it.
func (r *Reconciler) reply(ctx context.Context, s *observation, d decision) (reconcile.Result, error) {
	granted, d, err := r.applyDecision(ctx, s, d)
	if err != nil {
		return hub.ResultOf(err)
	}
	ar := s.ar
	if d.forced {
		if err := hub.RemoveOperation(ctx, r.client, ar); err != nil {
			return hub.ResultOf(err)
		}
	}
	before := ar.DeepCopy()
	trust.Record(ar, granted != nil)
	if granted == nil {
		return r.failed(ctx, before, s, d)
	}
	answer.Granted(ar, granted.message, granted.roles)
	if err := r.answers.Report(ctx, before, ar); err != nil {
		return hub.ResultOf(err)
	}
	return reconcile.Result{RequeueAfter: nextCheck(ar, time.Now(), granted.renewal)}, nil
}

// applyDecision grants, renews or revokes access in the cluster, as decided. If that fails, it returns the decision after the failure; the error is a conflict.
func (r *Reconciler) applyDecision(ctx context.Context, s *observation, d decision) (granted *given, then decision, conflict error) {
	if d.do == grant || d.do == renew {
		ctrl.LoggerFrom(ctx).V(4).Info("Granting access", "reason", d.because)
		granted, err := r.grant(ctx, s)
		if err == nil || apierrors.IsConflict(err) {
			return granted, d, err
		}
		d = d.refuse(s.ar, err)
	}
	if d.do != refuse {
		return nil, d, nil
	}
	if !errors.As(d.why, &clusterprovider.NotYet{}) { // another request does not change a cluster that is about to trust an issuer
		r.issuers.Forget(s.ar.UID)
	}
	if d.mustRevoke {
		t, err := r.reach(s.closer.config, s.ar, s.cluster)
		if err == nil {
			err = r.revoke(ctx, s.ar, s.cluster, t)
		}
		if err != nil {
			d = d.alsoFailed(err)
		}
	}
	return nil, d, nil
}

// failed reports on the request why no access is granted.
func (r *Reconciler) failed(ctx context.Context, before *v1alpha1.AccessRequest, s *observation, d decision) (reconcile.Result, error) {
	answer.Failed(s.ar, d.why, !s.deleted() && s.stillValid())
	if err := r.answers.Report(ctx, before, s.ar); err != nil {
		return hub.ResultOf(err)
	}
	if d.again == 0 {
		return reconcile.Result{}, d.why
	}
	ctrl.LoggerFrom(ctx).Info("Access is not granted yet", "reason", d.why.Error())
	return reconcile.Result{RequeueAfter: d.again}, nil
}

// errNotOurs reports a cluster of a provider with our name in another environment.
var errNotOurs = errors.New("the cluster belongs to another provider")

// clusterOf returns the Cluster to which access is requested.
func (r *Reconciler) clusterOf(ctx context.Context, ar *v1alpha1.AccessRequest) (*v1alpha1.Cluster, error) {
	if ar.Spec.ClusterRef == nil {
		return nil, hub.Because(v1alpha1.ReasonInvalidReference, errors.New("spec.clusterRef is not set yet"))
	}
	ref, cluster := ar.Spec.ClusterRef.NamespacedName(), &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, ref, cluster); apierrors.IsNotFound(err) {
		return nil, hub.Because(v1alpha1.ReasonInvalidReference, fmt.Errorf("referenced Cluster '%s' not found", ref))
	} else if err != nil {
		return nil, err
	}
	profile := &v1alpha1.ClusterProfile{}
	err := r.client.Get(ctx, types.NamespacedName{Name: cluster.Spec.Profile}, profile)
	switch {
	case apierrors.IsNotFound(err) && controllerutil.ContainsFinalizer(cluster, r.ClusterFinalizer()):
		return cluster, nil
	case apierrors.IsNotFound(err):
		return nil, hub.Because(v1alpha1.ReasonInvalidReference, fmt.Errorf("ClusterProfile '%s' not found", cluster.Spec.Profile))
	case err != nil:
		return nil, err
	case profile.Spec.ProviderRef.Name != r.Name:
		return nil, hub.Because(v1alpha1.ReasonInvalidReference, fmt.Errorf("the Cluster '%s' does not belong to the provider %q", ref, r.Name))
	case !r.Responsible(profile):
		return nil, errNotOurs
	}
	return cluster, nil
}

// addFinalizer adds the finalizer, which remains until the access has been revoked.
func (r *Reconciler) addFinalizer(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	return hub.Patch(ctx, r.client, ar, func() { controllerutil.AddFinalizer(ar, r.AccessFinalizer()) })
}

// answerTimeout is the maximum time for a cluster to respond while access to it is granted or revoked.
const answerTimeout = 30 * time.Second

// connect returns the configuration to reach a cluster.
func (r *Reconciler) connect(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	config, err := r.provider.Connect(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("reaching the Cluster '%s': %w", client.ObjectKeyFromObject(cluster), err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = answerTimeout
	return config, nil
}

// targetOf returns a cluster in which the objects of a request can be changed.
func (r *Reconciler) targetOf(config *rest.Config, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) (*target.Target, error) {
	return target.New(config, apply.Owner{Labels: r.AccessLabels(ar), Origin: trust.Origin(r.Identity, ar, cluster)})
}
