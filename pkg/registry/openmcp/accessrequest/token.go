// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const (
	minLifetime     = 10 * time.Minute // less than any cluster grants
	defaultLifetime = time.Hour
	maxLifetime     = 24 * time.Hour
	maxAudiences    = 16 // of one token; all are sent to its cluster

	phaseGranted = "Granted"
	phaseDenied  = "Denied"
)

// TokenREST issues AccessTokens: it requests from the cluster of an AccessRequest a token of the ServiceAccount of the granted request. Nothing is
// stored.
type TokenREST struct {
	requests, clusters rest.Getter
	sources            tokenSources
	now                func() time.Time
}

var (
	_ rest.Storage      = &TokenREST{}
	_ rest.NamedCreater = &TokenREST{}
)

// NewTokenREST returns the subresource token of accessrequests. The front has the token sources.
func NewTokenREST(requests, clusters rest.Getter, front corev1client.CoreV1Interface) *TokenREST {
	return &TokenREST{requests: requests, clusters: clusters, sources: tokenSources{front}, now: time.Now}
}

// New implements rest.Storage.
func (r *TokenREST) New() runtime.Object { return &openmcp.AccessToken{} }

// Destroy implements rest.Storage. The stores belong to others.
func (r *TokenREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r *TokenREST) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	token, ok := obj.(*openmcp.AccessToken)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is not an AccessToken", obj))
	}
	if token.Name != "" && token.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name must be %q, the name of the AccessRequest, or not be set, not %q",
			name, token.Name))
	}
	if given := len(token.Spec.Audiences); given > maxAudiences {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.audiences: must have %d entries at most, not %d", maxAudiences, given))
	}
	found, err := r.requests.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	owner := found.(*openmcp.AccessRequest)
	token.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: owner.Namespace, CreationTimestamp: metav1.NewTime(r.now())}
	token.Status = openmcp.AccessTokenStatus{}
	if createValidation != nil {
		if err := createValidation(ctx, token.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.check(ctx, owner); err != nil {
		return nil, err
	}
	lifetime, err := r.lifetime(ctx, owner, token.Spec.ExpirationSeconds)
	if err != nil {
		return nil, err
	}
	source, err := r.sources.of(ctx, owner)
	if err != nil {
		return nil, err
	}
	seconds := int64(lifetime / time.Second)
	token.Spec.ExpirationSeconds = &seconds
	token.Status.Server, token.Status.CertificateAuthorityData = source.server, source.ca
	if dryrun.IsDryRun(options.DryRun) {
		token.Status.ExpirationTimestamp = metav1.NewTime(r.now().Add(lifetime))
		warning.AddWarning(ctx, "", fmt.Sprintf("dry run: no token was requested from the cluster; without it, a token that is valid for %s would be requested",
			lifetime))
		return token, nil
	}
	minted, err := source.mint(ctx, seconds, token.Spec.Audiences)
	if err != nil {
		return nil, err
	}
	if err := r.checkAgain(ctx, owner); err != nil {
		return nil, err
	}
	if given := minted.ExpirationTimestamp.Sub(r.now()); given < lifetime-time.Minute {
		warning.AddWarning(ctx, "", fmt.Sprintf("the cluster only grants tokens for %s", given.Round(time.Second)))
	}
	token.Status.Token, token.Status.ExpirationTimestamp = minted.Token, minted.ExpirationTimestamp
	token.Status.Kubeconfig, err = source.kubeconfig(minted.Token)
	return token, err
}

// check rejects requests for which no token can be issued: with a conflict if waiting helps, and as forbidden otherwise.
func (r *TokenREST) check(ctx context.Context, o *openmcp.AccessRequest) error {
	switch {
	case o.DeletionTimestamp != nil:
		return conflict(o, "it is being deleted")
	case o.Spec.Token == nil:
		return forbidden(o, "it asks for access by OIDC: only the OIDC provider has tokens")
	case o.Status.Phase == phaseDenied:
		return forbidden(o, "it is denied")
	case o.Status.Phase != phaseGranted:
		return conflict(o, "it is not granted yet: wait until its status.phase is Granted")
	case o.Status.ObservedGeneration != o.Generation:
		return conflict(o, "it has changed since it was granted: wait until its status.observedGeneration is its metadata.generation")
	case o.Spec.ClusterRef == nil:
		return conflict(o, "it has no spec.clusterRef yet")
	}
	ref := o.Spec.ClusterRef
	_, err := r.clusters.Get(request.WithNamespace(ctx, ref.Namespace), ref.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return conflict(o, fmt.Sprintf("its Cluster %s/%s does not exist", ref.Namespace, ref.Name))
	}
	return err
}

// checkAgain rejects a token that was issued for a previous version of its request. After a shorter ttl the provider invalidates the existing tokens,
// and this one may have been issued after that.
func (r *TokenREST) checkAgain(ctx context.Context, before *openmcp.AccessRequest) error {
	found, err := r.requests.Get(ctx, before.Name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := found.(*openmcp.AccessRequest)
	if now.UID != before.UID || now.Generation != before.Generation {
		return conflict(before, "it has changed while the token was created: try again")
	}
	return r.check(ctx, now)
}

// lifetime returns the lifetime to request for a token. A warning reports a difference from the desired one.
func (r *TokenREST) lifetime(ctx context.Context, o *openmcp.AccessRequest, seconds *int64) (time.Duration, error) {
	wanted := defaultLifetime
	if seconds != nil {
		bounded := min(max(*seconds, int64(minLifetime/time.Second)), int64(maxLifetime/time.Second))
		wanted = time.Duration(bounded) * time.Second
		if bounded != *seconds {
			warning.AddWarning(ctx, "", fmt.Sprintf("spec.expirationSeconds: %d is not between 600 and 86400, %d is taken instead",
				*seconds, bounded))
		}
	}
	if o.Spec.TTL == nil {
		return wanted, nil
	}
	ends := o.CreationTimestamp.Add(o.Spec.TTL.Duration)
	left := ends.Sub(r.now()).Truncate(time.Second)
	switch {
	case left <= 0:
		return 0, forbidden(o, fmt.Sprintf("its ttl expired at %s: create another request", ends.UTC().Format(time.RFC3339)))
	case left < minLifetime:
		return 0, forbidden(o, fmt.Sprintf("its ttl expires at %s, in less than the minimum lifetime of a token, %s: create another "+
			"request, or give this one a longer spec.ttl", ends.UTC().Format(time.RFC3339), minLifetime))
	case left < wanted:
		warning.AddWarning(ctx, "", fmt.Sprintf("the token is only valid for %s: then the ttl of the AccessRequest expires", left))
		return left, nil
	}
	return wanted, nil
}

func conflict(o *openmcp.AccessRequest, why string) error {
	return apierrors.NewConflict(openmcp.Resource("accessrequests"), o.Name, errors.New(why))
}

func forbidden(o *openmcp.AccessRequest, why string) error {
	return apierrors.NewForbidden(openmcp.Resource("accessrequests"), o.Name, errors.New(why))
}
