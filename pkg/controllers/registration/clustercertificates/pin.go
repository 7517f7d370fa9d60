// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// pinned is the key of a cluster's agent, and the time since which it is pinned.
type pinned struct {
	key   string
	since time.Time
}

// standing is a cluster with its record. Both are of the same cluster.
type standing struct {
	cluster *clusterv1.ManagedCluster
	kept    *corev1.ConfigMap
	record  record.Record
	// requests returns the cluster's requests that are pending or were approved. They are read when they are needed.
	requests func() ([]certificatesv1.CertificateSigningRequest, error)
}

// source is a reader of standings, with the option that finds the requests of a cluster.
type source struct {
	client.Reader
	requestsOf func(cluster string) client.ListOption
}

func (r *Reconciler) cache() source {
	return source{r.client, func(cluster string) client.ListOption { return client.MatchingFields{openIndex: cluster} }}
}

func (r *Reconciler) server() source {
	return source{r.live, func(cluster string) client.ListOption {
		return client.MatchingLabels{registration.ClusterNameLabel: cluster}
	}}
}

// standing returns nil for a cluster that is not accepted, or has no record yet.
func (f source) standing(ctx context.Context, name string) (*standing, error) {
	s := &standing{cluster: &clusterv1.ManagedCluster{}}
	if err := f.Get(ctx, client.ObjectKey{Name: name}, s.cluster); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	if !s.cluster.Spec.HubAcceptsClient || !s.cluster.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	var err error
	s.kept, err = record.Get(ctx, f, name)
	if err != nil {
		return nil, err
	}
	s.record = record.Of(s.kept)
	if s.record.UID != s.cluster.UID || s.record.Driver == "" {
		return nil, nil
	}
	s.requests = func() ([]certificatesv1.CertificateSigningRequest, error) { return f.requests(ctx, name) }
	return s, nil
}

// requests returns the requests of a cluster that are pending or were approved. A live list may have others, too.
func (f source) requests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	err := f.List(ctx, list, f.requestsOf(cluster), client.UnsafeDisableDeepCopy)
	return list.Items, err
}

func (s *standing) byCertificate() bool { return s.record.Driver == csr.Name }

func (s *standing) granted() bool { return !s.record.Granted.IsZero() }

// pinned returns an empty key if none is pinned, and registration.UndecidedKey if an admin must decide.
func (s *standing) pinned() pinned {
	p := pinned{key: s.record.Key}
	p.since, _ = time.Parse(time.RFC3339, s.record.KeySince)
	return p
}

// requesters returns the users who may request the first certificate. It is empty if all may. If the list is too long, no user may.
func (s *standing) requesters() []string {
	users, _ := registration.ParseRequesters(s.record.Requesters)
	return users
}

// supersedes reports whether an approval is for a different key than the pinned one, and later. An approval from before the cluster was created is
// for an earlier one of its name.
func (s *standing) supersedes(approval pinned) bool {
	now := s.pinned()
	if approval.key == now.key || approval.since.Before(s.cluster.CreationTimestamp.Time) {
		return false
	}
	return now.key == registration.UndecidedKey || approval.since.After(now.since)
}

// pin writes the key to the cluster's record, which must be unchanged since it was read.
func (r *Reconciler) pin(ctx context.Context, s *standing, p pinned) error {
	err := record.Patch(ctx, r.client, s.kept, func(kept *record.Record) {
		kept.Key, kept.KeySince = p.key, p.since.UTC().Format(time.RFC3339)
	})
	if err != nil {
		return fmt.Errorf("pinning the key of the cluster's agent: %w", err)
	}
	return nil
}

// isOpen reports whether a request is pending or approved.
func isOpen(request *certificatesv1.CertificateSigningRequest) bool {
	return agentcsr.IsPending(request) || agentcsr.Approval(request) != nil
}

// approvalOf returns the key of an approved request, and the time of the approval. The API server sets the time unless the approver does. It is
// never in the future.
func approvalOf(request *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request) pinned {
	at := agentcsr.Approval(request).LastTransitionTime.Time
	if now := time.Now(); at.After(now) {
		at = now
	}
	return pinned{key: parsed.KeySHA256, since: at}
}
