// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// decision is the decision on a request. Without a reason to leave it to an admin, the request is approved.
type decision struct {
	why string
	// pin is the key to pin before the approval.
	pin *pinned
}

func left(format string, args ...any) decision { return decision{why: fmt.Sprintf(format, args...)} }

const (
	whyUndecided = "several keys were requested at the same time, or the cluster was created with an invalid key: only an admin can know " +
		"which key is right"
	whyUnasked = "no certificate of the cluster had been requested when it was accepted, or only in the seconds before, and the acceptance " +
		"does not name the requester: an admin must approve its first one"
	whyOverruled = "it is for another key than the request that an admin has approved"
	whyEarlier   = "it was created before the ManagedCluster, or in the same seconds, so it may belong to an earlier cluster of that name"
)

// skew is the maximum difference between the clocks of kube-apiserver and hub-apiserver. The order of two events within it is not known, if each
// server has written the time of one. Then the order in which the agent gets no certificate is assumed.
const skew = 5 * time.Second

// checkRequester returns why a user may not request a certificate, or "".
func (r *Reconciler) checkRequester(object *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request) string {
	if parsed.Asker(&object.Spec, r.BootstrapUsers) != agentcsr.Stranger {
		return ""
	}
	return fmt.Sprintf("the user %q is neither the agent that the request is for nor a bootstrap identity", object.Spec.Username)
}

// signersLifetime is the default lifetime of kube-controller-manager's certificates (--cluster-signing-duration). The value of the flag is not
// known here.
const signersLifetime = 365 * 24 * time.Hour

// checkLifetime returns why the lifetime of a certificate would be too long, or "". A certificate cannot be revoked.
func (r *Reconciler) checkLifetime(spec *certificatesv1.CertificateSigningRequestSpec) string {
	asked, whose := signersLifetime, "no lifetime (spec.expirationSeconds), so the signer chooses it, by default"
	if spec.ExpirationSeconds != nil {
		asked, whose = time.Duration(*spec.ExpirationSeconds)*time.Second, "a lifetime of"
	}
	if asked <= r.MaxLifetime {
		return ""
	}
	return fmt.Sprintf("it asks for %s %s, and hub-certificate-approver approves at most %s (--max-certificate-duration)", whose,
		asked, r.MaxLifetime)
}

// decide returns the decision on the request of an accepted cluster. It changes nothing.
func (r *Reconciler) decide(object *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request, s *standing) (decision, error) {
	if !s.byCertificate() {
		return left("the cluster is accepted by the registration driver %q and needs no certificate", s.record.Driver), nil
	}
	if why := r.checkLifetime(&object.Spec); why != "" {
		return decision{why: why}, nil
	}
	now := s.pinned()
	if parsed.IsRenewal(&object.Spec) {
		switch {
		case parsed.KeySHA256 == now.key:
			return decision{}, nil
		case !object.CreationTimestamp.After(s.cluster.CreationTimestamp.Add(skew)):
			return decision{why: whyEarlier}, nil
		}
		return decision{pin: &pinned{parsed.KeySHA256, time.Now()}}, nil
	}
	joined := meta.FindStatusCondition(s.cluster.Status.Conditions, registration.ConditionJoined) != nil
	switch {
	case now.key == registration.UndecidedKey:
		return decision{why: whyUndecided}, nil
	case !joined && len(s.requesters()) > 0 && !slices.Contains(s.requesters(), object.Spec.Username):
		return left("the acceptance of the cluster names the users who may request its first certificate, and %q is not one of them", object.Spec.Username), nil
	case now.key == parsed.KeySHA256:
		return decision{}, nil
	case now.key != "":
		return left("it is for another key than the agent of the cluster has, whose SHA-256 is %s", now.key), nil
	case joined:
		return left("the cluster has joined already, and the hub does not know which key its agent has"), nil
	}
	requests, err := s.requests()
	if err != nil {
		return decision{}, err
	}
	first := r.firstKey(requests, s)
	switch first.key {
	case "":
		return decision{why: whyUnasked}, nil
	case registration.UndecidedKey:
		return decision{why: whyUndecided, pin: &first}, nil
	case parsed.KeySHA256:
		return decision{pin: &first}, nil
	}
	return decision{pin: &first, why: "it is for another key than the cluster's first certificate, whose SHA-256 is " + first.key}, nil
}

// confirm decides on a request for the pinned key. The pin may be the key that another program created the cluster with, while an admin has
// approved the request of its agent by other means. A cluster with a single request is not read live: a fleet that joins at once has many.
func (r *Reconciler) confirm(ctx context.Context, cluster string, s *standing) (decision, error) {
	cached, err := r.cache().requests(ctx, cluster)
	if err != nil || len(cached) <= 1 {
		return decision{}, err
	}
	requests, err := s.requests()
	if err != nil {
		return decision{}, err
	}
	if approved := s.approved(requests); approved.key != "" {
		return decision{pin: &approved, why: whyOverruled}, nil
	}
	return decision{}, nil
}

// approved returns the last approved key that is not the pinned one. It is empty without one.
func (s *standing) approved(requests []certificatesv1.CertificateSigningRequest) (last pinned) {
	for i := range requests {
		if agentcsr.Approval(&requests[i]) == nil {
			continue
		}
		if parsed, err := agentcsr.Parse(&requests[i]); err == nil {
			if approval := approvalOf(&requests[i], parsed); s.supersedes(approval) && approval.since.After(last.since) {
				last = approval
			}
		}
	}
	return last
}

// firstKey returns the key of the first certificate of a cluster, from all requests. It is empty if that cannot be decided yet.
//
// The key is the one that an admin has approved, or the only one that the requesters who count ask for. These are the users that were named when
// the cluster was accepted; or the trusted ones, if one of them asks; or all, if one of them had asked before the acceptance.
func (r *Reconciler) firstKey(requests []certificatesv1.CertificateSigningRequest, s *standing) pinned {
	if approved := s.approved(requests); approved.key != "" {
		return approved
	}
	var all, before, trusted, named []*certificatesv1.CertificateSigningRequest
	requesters := s.requesters()
	for i := range requests {
		request := &requests[i]
		user := request.Spec.Username
		if !agentcsr.IsPending(request) || !agentcsr.IsBootstrap(user, r.BootstrapUsers) {
			continue
		}
		all = append(all, request)
		if s.acceptedAfter(request) {
			before = append(before, request)
		}
		if slices.Contains(requesters, user) {
			named = append(named, request)
		}
		if slices.Contains(r.TrustedUsers, user) {
			trusted = append(trusted, request)
		}
	}
	switch {
	case len(requesters) > 0:
		all = named
	case len(trusted) > 0:
		all = trusted
	case onlyKey(before) == "":
		all = nil
	}
	return pinned{onlyKey(all), time.Now()}
}

// acceptedAfter reports whether a request certainly existed when the cluster was accepted. A cluster that was created as accepted was accepted
// before there was any request.
func (s *standing) acceptedAfter(request *certificatesv1.CertificateSigningRequest) bool {
	at, err := time.Parse(time.RFC3339, s.cluster.Annotations[registration.AnnotationAcceptedAt])
	return err == nil && !request.CreationTimestamp.After(at.Add(-skew))
}

// onlyKey returns the key that all requests are for. It is empty without one.
func onlyKey(requests []*certificatesv1.CertificateSigningRequest) (key string) {
	for _, request := range requests {
		parsed, err := agentcsr.Parse(request)
		switch {
		case err != nil:
			continue
		case key != "" && key != parsed.KeySHA256:
			return registration.UndecidedKey
		}
		key = parsed.KeySHA256
	}
	return key
}
