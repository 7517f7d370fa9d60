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
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// pinned is the key of a cluster's agent, and since when it is.
type pinned struct {
	key   string
	since time.Time
}

// standing is how the hub stands to a cluster: what it wants, and what it remembers. Both are of the same cluster.
type standing struct {
	cluster *clusterv1.ManagedCluster
	kept    *corev1.ConfigMap
	record  record.Record
	// requests are those of the cluster that wait or were approved. They are read when they are needed.
	requests func() ([]certificatesv1.CertificateSigningRequest, error)
}

// source is where a standing is read, and how the requests of a cluster are found there.
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

// standing returns nil for a cluster that is not accepted, or of which the hub remembers nothing yet.
func (f source) standing(ctx context.Context, name string) (*standing, error) {
	s := &standing{cluster: &clusterv1.ManagedCluster{}}
	if err := f.Get(ctx, client.ObjectKey{Name: name}, s.cluster); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	if !s.cluster.Spec.HubAcceptsClient || !s.cluster.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	var err error
	if s.kept, err = record.Get(ctx, f, name); err != nil {
		return nil, err
	}
	if s.record = record.Of(s.kept); s.record.UID != s.cluster.UID || s.record.Driver == "" {
		return nil, nil
	}
	s.requests = func() ([]certificatesv1.CertificateSigningRequest, error) { return f.requests(ctx, name) }
	return s, nil
}

// requests are those of a cluster that wait or were approved, of a server also others.
func (f source) requests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	err := f.List(ctx, list, f.requestsOf(cluster), client.UnsafeDisableDeepCopy)
	return list.Items, err
}

func (s *standing) byCertificate() bool { return s.record.Driver == csr.Name }

func (s *standing) granted() bool { return !s.record.Granted.IsZero() }

// pinned is empty when no key is, and registration.UndecidedKey when an admin has to say which.
func (s *standing) pinned() pinned {
	p := pinned{key: s.record.Key}
	p.since, _ = time.Parse(time.RFC3339, s.record.KeySince)
	return p
}

// requesters are the users who may ask for the first certificate, none if all may. Of a list that is too long, no user is.
func (s *standing) requesters() []string {
	users, _ := registration.ParseRequesters(s.record.Requesters)
	return users
}

// supersedes says whether an approval is of another key than the one that is pinned, and of a later time. What was
// approved before the cluster was made is of another one of its name.
func (s *standing) supersedes(approval pinned) bool {
	now := s.pinned()
	if approval.key == now.key || approval.since.Before(s.cluster.CreationTimestamp.Time) {
		return false
	}
	return now.key == registration.UndecidedKey || approval.since.After(now.since)
}

// pin writes the key to the cluster's record, which must be as it was read.
func (r *Reconciler) pin(ctx context.Context, s *standing, p pinned) error {
	err := record.Patch(ctx, r.client, s.kept, func(kept *record.Record) {
		kept.Key, kept.KeySince = p.key, p.since.UTC().Format(time.RFC3339)
	})
	if err != nil {
		return fmt.Errorf("pinning the key of the cluster's agent: %w", err)
	}
	return nil
}

// isOpen says whether a request waits, or was approved.
func isOpen(request *certificatesv1.CertificateSigningRequest) bool {
	return agentcsr.IsPending(request) || agentcsr.Approval(request) != nil
}

// approvalOf is the key of an approved request, and when that was approved, by the API server's clock as long as the one
// who did left it to it. It was not in the future.
func approvalOf(request *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request) pinned {
	at := agentcsr.Approval(request).LastTransitionTime.Time
	if now := time.Now(); at.After(now) {
		at = now
	}
	return pinned{key: parsed.KeySHA256, since: at}
}
