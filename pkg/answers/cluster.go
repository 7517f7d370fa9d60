// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// serviceFault returns the message of an APIService that is not available.
func serviceFault(service *unstructured.Unstructured, otherwise string) (fault string, since metav1.Time) {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Available" || condition["status"] == "True" {
			continue
		}
		if at, ok := condition["lastTransitionTime"].(string); ok {
			_ = since.UnmarshalQueryParameter(at) // a time that cannot be parsed stays zero
		}
		return fmt.Sprintf("%v: %v", condition["reason"], condition["message"]), since
	}
	return otherwise, since
}

// clusterFacts reads a cluster and its objects. Objects that the user may not see are noted, and cause no error.
func (h *HubView) clusterFacts(ctx context.Context, facts *diagnosis.ClusterFacts) (err error) {
	found, err := h.Cluster(ctx, facts.Name)
	facts.Cluster, err = asRead(found, err, "get managedclusters "+facts.Name+", nor is it in a set whose clusters you may get")
	if err != nil {
		return err
	}
	if found, ok := facts.Cluster.Get(); !ok {
		return nil
	} else if !found.Spec.HubAcceptsClient {
		rules, err := h.rules(ctx, "")
		if err != nil {
			return err
		}
		accept := rbac.Permission{Verb: "update", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "accept", Name: facts.Name}
		upstreams := accept
		upstreams.Group = registration.RegisterGroup
		facts.Accepters = rules.Holders(accept, upstreams)
	}
	lease, err := h.kube.CoordinationV1().Leases(facts.Name).Get(ctx, registration.LeaseName, metav1.GetOptions{})
	facts.Lease, err = asRead(lease, err, "get leases in the namespace "+facts.Name+", which the agent renews")
	if err != nil {
		return err
	}
	requests, err := h.agentRequests(ctx, facts.Name)
	facts.Requests, err = asRead(requests, err, "list certificatesigningrequests, with which agents get their identity")
	return err
}

// agentRequests returns the certificate requests of a cluster, the oldest first.
func (h *HubView) agentRequests(ctx context.Context, cluster string) ([]diagnosis.CertificateRequest, error) {
	list, err := h.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + cluster})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list.Items, func(a, b certificatesv1.CertificateSigningRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	var all []diagnosis.CertificateRequest
	for i := range list.Items {
		csr := &list.Items[i]
		_, err := agentcsr.Parse(csr)
		if errors.Is(err, agentcsr.ErrOther) {
			continue
		}
		r := diagnosis.CertificateRequest{Name: csr.Name, Requester: csr.Spec.Username, Made: csr.CreationTimestamp, Approved: agentcsr.Approval(csr) != nil}
		if err != nil {
			r.NotAnAgents = err.Error()
		}
		for _, c := range csr.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved && c.Status == corev1.ConditionTrue {
				r.Refused, r.Why = true, c.Message
			}
		}
		if block, _ := pem.Decode(csr.Status.Certificate); block != nil {
			if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
				r.Expires = certificate.NotAfter
			}
		}
		all = append(all, r)
	}
	return all, nil
}
