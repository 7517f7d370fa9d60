// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csr registers clusters by certificates of the hub's kube-apiserver. Its identities are issued by the controller of
// pkg/controllers/registration/clustercertificates and by kube-controller-manager, so nothing must be created or deleted for a cluster. A
// certificate cannot be revoked: denying a cluster removes its rights.
package csr

import (
	"context"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// Name is the name of the driver.
const Name = "csr"

// Driver implements driver.Driver.
type Driver struct {
	requests   client.Reader
	identities []string
}

var (
	_ driver.Driver  = &Driver{}
	_ driver.Watcher = &Driver{}
)

// New returns the driver. A cluster for which one of the identities, which are names of users, requests a certificate is accepted without an admin;
// the certificate requests are read from requests.
func New(requests client.Reader, identities []string) *Driver {
	return &Driver{requests: requests, identities: identities}
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return Name }

// Handles implements driver.Driver: a cluster without annotations of another driver registers by certificate.
func (d *Driver) Handles(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Annotations[registration.AnnotationManagedClusterARN] == "" &&
		cluster.Annotations[registration.AnnotationManagedClusterARNOfSeed] == ""
}

// Plan implements driver.Driver.
func (d *Driver) Plan(*clusterv1.ManagedCluster) (driver.Record, error) { return "", nil }

// Grant implements driver.Driver.
func (d *Driver) Grant(context.Context, string, driver.Record) error { return nil }

// Revoke implements driver.Driver.
func (d *Driver) Revoke(context.Context, string, driver.Record) error { return nil }

// CheckInterval implements driver.Driver.
func (d *Driver) CheckInterval() time.Duration { return 0 }

// Watches implements driver.Watcher.
func (d *Driver) Watches() []client.Object {
	return []client.Object{&certificatesv1.CertificateSigningRequest{}}
}

// AutoApproves implements driver.Driver. A ManagedCluster does not have its creator, but a certificate request has its requester. If the cluster
// names the key of its agent, the request must be for that key: otherwise another user has created the cluster in the place of the requester. The
// same applies if the cluster names other requesters, which a cluster of an earlier version may do without an admin.
func (d *Driver) AutoApproves(cluster *clusterv1.ManagedCluster) bool {
	if len(d.identities) == 0 {
		return false
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	// From the cache; if it has no requests yet, they arrive as events.
	if err := d.requests.List(context.Background(), list, client.MatchingLabels{registration.ClusterNameLabel: cluster.Name}); err != nil {
		return false
	}
	planned := agentcsr.PlannedKey(cluster.Annotations)
	requesters, err := registration.Requesters(cluster.Annotations)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list.Items, func(csr certificatesv1.CertificateSigningRequest) bool {
		if !agentcsr.IsPending(&csr) || !slices.Contains(d.identities, csr.Spec.Username) {
			return false
		}
		if len(requesters) > 0 && !slices.Contains(requesters, csr.Spec.Username) {
			return false
		}
		request, err := agentcsr.Parse(&csr)
		return err == nil && (planned == "" || planned == request.KeySHA256)
	})
}
