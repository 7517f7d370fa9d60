// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const (
	// maxPending is the maximum number of pending requests of one requester: of an agent, all for the registration's signer, and as many for all
	// others; of a bootstrap identity, those for one cluster. It must be at least 2, so that several keys stay several.
	maxPending = 20
	// maxUnknown is the maximum number of pending requests of one bootstrap identity for clusters that the hub does not have. hub-apiserver limits
	// the number of clusters (--max-pending-clusters).
	maxUnknown = 100

	// pendingIndex finds the pending requests of a requester, those of a requester for one cluster, and those for other signers.
	pendingIndex = "pending"
)

var removed = prometheus.NewCounter(prometheus.CounterOpts{Name: "clusterhub_registration_requests_removed_total",
	Help: "Pending certificate requests that were deleted because their requester had too many."})

// pendingOf returns the keys of pendingIndex for a request.
func pendingOf(obj client.Object) []string {
	request := obj.(*certificatesv1.CertificateSigningRequest)
	cluster := request.Labels[registration.ClusterNameLabel]
	if cluster == "" || !agentcsr.IsPending(request) {
		return nil
	}
	if request.Spec.SignerName != registration.SignerName {
		return []string{otherSigners(request.Spec.Username)}
	}
	return []string{request.Spec.Username, pairOf(request.Spec.Username, cluster)}
}

// pairOf returns the key of the requests of a user for a cluster. Labels have no line breaks.
func pairOf(user, cluster string) string { return cluster + "\n" + user }

// otherSigners returns the key of the requests of a user for signers other than the registration's. No cluster has an empty name.
func otherSigners(user string) string { return pairOf(user, "") }

// bound deletes the oldest pending requests of a requester beyond the limit, and reports whether the given one was among them. Requests of other
// users do not count, and stay, as do those of bootstrap identities for other signers: a policy refuses these.
func (r *Reconciler) bound(ctx context.Context, object *certificatesv1.CertificateSigningRequest) (gone bool, err error) {
	excess, err := r.excess(ctx, object)
	if err != nil {
		return false, err
	}
	deleted := 0
	for _, request := range excess {
		// A request that was decided since it was read has another version.
		err := r.client.Delete(ctx, request, client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion})
		if err != nil && !kit.IsStale(err) {
			return false, fmt.Errorf("deleting the certificate request %s, since %q has too many: %w", request.Name, request.Spec.Username, err)
		}
		if err == nil {
			deleted++
			removed.Inc()
		}
		gone = gone || request.UID == object.UID
	}
	if deleted == 0 {
		return gone, nil
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: object.Labels[registration.ClusterNameLabel]}, cluster); err != nil {
		return gone, kit.IgnoreGone(err)
	}
	// The event is about the cluster, so that a flood of requests is one series of Events.
	r.recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "ManagedClusterCSRRemoved", "Delete", "%s", kit.Message(fmt.Sprintf(
		"The user %q has more than %d certificate requests pending: the oldest ones are deleted", object.Spec.Username, maxPending)))
	return gone, nil
}

// excess returns the requests to delete when a request has come.
func (r *Reconciler) excess(ctx context.Context, object *certificatesv1.CertificateSigningRequest) ([]*certificatesv1.CertificateSigningRequest, error) {
	user, cluster := object.Spec.Username, object.Labels[registration.ClusterNameLabel]
	other := object.Spec.SignerName != registration.SignerName
	if !agentcsr.IsBootstrap(user, r.BootstrapUsers) {
		if _, agent := registration.ClusterOfAgent(object.Spec.Groups); !agent {
			return nil, nil
		}
		key := user
		if other {
			key = otherSigners(user)
		}
		// Only requests of its own agent are for a cluster, whatever their labels.
		pending, err := r.pending(ctx, key)
		return pending[:max(len(pending)-maxPending, 0)], err
	}
	if other {
		return nil, nil
	}
	pending, err := r.pending(ctx, pairOf(user, cluster))
	if err != nil || len(pending) > maxPending {
		return excessOfKeys(pending), err
	}
	// The requests of a fleet that joins at once, by one bootstrap identity, must not be deleted.
	if known, err := r.knows(ctx, r.client, cluster); known || err != nil {
		return nil, err
	}
	pending, err = r.pending(ctx, user)
	if err != nil || len(pending) <= maxUnknown {
		return nil, err
	}
	pending, err = r.ofUnknown(ctx, r.client, pending)
	if err != nil || len(pending) <= maxUnknown {
		return nil, err
	}
	// The cache of clusters may be older than that of requests.
	return r.ofUnknown(ctx, r.live, pending[:len(pending)-maxUnknown])
}

// excessOfKeys returns the requests of one user for one cluster beyond the limit. Which key is the cluster's may depend on whether there are
// requests for more than one: repetitions of a key, and requests without a valid key, are deleted first. The first request for a key shows whether
// there was one when the cluster was accepted: the later ones are deleted.
func excessOfKeys(pending []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	var first, others []*certificatesv1.CertificateSigningRequest
	seen := map[string]bool{}
	for _, request := range pending {
		if parsed, err := agentcsr.Parse(request); err == nil && !seen[parsed.KeySHA256] {
			seen[parsed.KeySHA256] = true
			first = append(first, request)
		} else {
			others = append(others, request)
		}
	}
	keep := min(len(first), maxPending)
	return append(others[:max(len(others)-(maxPending-keep), 0)], first[:len(first)-keep]...)
}

// pending returns the requests under a key of pendingIndex, the oldest first. They belong to the cache.
func (r *Reconciler) pending(ctx context.Context, key string) ([]*certificatesv1.CertificateSigningRequest, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{pendingIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	requests := make([]*certificatesv1.CertificateSigningRequest, len(list.Items))
	for i := range list.Items {
		requests[i] = &list.Items[i]
	}
	slices.SortFunc(requests, compareAge)
	return requests, nil
}

// compareAge orders requests, the oldest first. Creation times are those of seconds; the versions order the requests within a second. A name is
// chosen by the requester, and must not decide which request of a flood stays.
func compareAge(a, b *certificatesv1.CertificateSigningRequest) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), kit.CompareVersions(a.ResourceVersion, b.ResourceVersion),
		cmp.Compare(a.Name, b.Name))
}

// ofUnknown returns the requests for clusters that a reader does not have.
func (r *Reconciler) ofUnknown(
	ctx context.Context, from client.Reader, requests []*certificatesv1.CertificateSigningRequest,
) (unknown []*certificatesv1.CertificateSigningRequest, err error) {
	for _, request := range requests {
		known, err := r.knows(ctx, from, request.Labels[registration.ClusterNameLabel])
		if err != nil {
			return nil, err
		}
		if !known {
			unknown = append(unknown, request)
		}
	}
	return unknown, nil
}

func (r *Reconciler) knows(ctx context.Context, from client.Reader, cluster string) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
