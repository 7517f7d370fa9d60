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
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
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

func (h *HubView) memberFacts(ctx context.Context, facts *diagnosis.MemberFacts) error {
	found, err := h.Cluster(ctx, facts.Cluster)
	facts.Object, err = asRead(found, err, "get managedclusters "+facts.Cluster+", nor is it in a set whose clusters you may get")
	if err != nil {
		return err
	}
	clusterSets := h.clusters.ClusterV1beta1().ManagedClusterSets()
	set, err := clusterSets.Get(ctx, facts.Set, metav1.GetOptions{})
	facts.Selects, err = asRead(set, err, "get managedclustersets "+facts.Set)
	if err != nil {
		return err
	}
	member, err := h.clusters.ViewV1alpha1().ClusterSetMembers().Get(ctx, facts.Cluster+"."+facts.Set, metav1.GetOptions{})
	facts.Member, err = asRead(member, err, "get clustersetmembers")
	if err != nil {
		return err
	}
	if _, is := facts.Member.Get(); is {
		return nil
	}
	others, err := paging.List(ctx, clusterSets.List, metav1.ListOptions{})
	facts.Others, err = asRead(others.Items, err, "list managedclustersets, of which another one may claim the label")
	if err != nil {
		return err
	}
	facts.MayLabel, err = h.mayLabel(ctx, facts)
	return err
}

// mayLabel returns whether the user may write the labels that would add the cluster to the set.
func (h *HubView) mayLabel(ctx context.Context, facts *diagnosis.MemberFacts) (may diagnosis.Read[bool], err error) {
	object, there := facts.Object.Get()
	set, known := facts.Selects.Get()
	if !there || !known {
		return may, nil
	}
	selects, err := selector.ForV1beta1(set)
	if err != nil {
		return may, nil // the check reports that
	}
	requirements, _ := selects.Requirements()
	changes, clear := diagnosis.Changes(requirements, object.Labels)
	if !clear {
		return diagnosis.Hidden[bool]("the selector of the set does not determine the label, so your right to write it was not checked"), nil
	}
	for _, change := range changes {
		key, value, adds := strings.Cut(strings.TrimSuffix(change, "-"), "=")
		if !cluster.IsReservedLabel(key) {
			continue
		}
		values := sets.New[string]()
		if adds {
			values.Insert(value)
		}
		if old, has := object.Labels[key]; has {
			values.Insert(old)
		}
		for value := range values {
			allowed, err := h.mayWriteLabel(ctx, key+":"+value, key+":*", "*")
			if err != nil || !allowed {
				return diagnosis.Found(false), err
			}
		}
	}
	return diagnosis.Found(true), nil
}

// mayWriteLabel reports whether the user may write a label with one of these names.
func (h *HubView) mayWriteLabel(ctx context.Context, names ...string) (bool, error) {
	for _, name := range names {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label", Name: name}}}
		answer, err := h.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("checking your own rights: %w", err)
		}
		if answer.Status.Allowed {
			return true, nil
		}
	}
	return false, nil
}

// placementFacts reads the explanation of the hub, and what is needed to describe how to change it.
func (h *HubView) placementFacts(ctx context.Context, facts *diagnosis.PlacementFacts) error {
	explanation, err := h.Explain(ctx, facts.Namespace, facts.Name, facts.Cluster)
	facts.ClusterMissing = IsMissing(err, "managedclusters")
	if !facts.ClusterMissing {
		facts.Explanation, err = asRead(explanation, err, "get placements/explain in the namespace "+facts.Namespace)
		if err != nil {
			return err
		}
	}
	if _, ok := facts.Explanation.Get(); !ok {
		return nil
	}
	placement, err := h.clusters.ClusterV1beta1().Placements(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	facts.Placement, err = asRead(placement, err, "get placements in the namespace "+facts.Namespace+", which have the requirements")
	if err != nil {
		return err
	}
	facts.Sets, err = h.setsOf(ctx, facts.Cluster)
	if err != nil {
		return err
	}
	list, err := h.clusters.ClusterV1beta2().ManagedClusterSetBindings(facts.Namespace).List(ctx, metav1.ListOptions{})
	var bound []string
	if err == nil {
		for i := range list.Items {
			bound = append(bound, list.Items[i].Spec.ClusterSet)
		}
		slices.Sort(bound)
	}
	facts.Bound, err = asRead(bound, err, "list managedclustersetbindings in the namespace "+facts.Namespace)
	return err
}

// accessRequestFacts reads a request and the objects that it refers to.
func (h *HubView) accessRequestFacts(ctx context.Context, facts *diagnosis.AccessRequestFacts) error {
	api := h.clusters.OpenMCPV1alpha1()
	request, err := api.AccessRequests(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	facts.Request, err = asRead(request, err, "get accessrequests in the namespace "+facts.Namespace)
	if err != nil {
		return err
	}
	if _, found := facts.Request.Get(); !found {
		return nil
	}
	switch by, is := request.Spec.RequestRef, request.Spec.ClusterRef; {
	case is != nil:
		cluster, err := api.Clusters(is.Namespace).Get(ctx, is.Name, metav1.GetOptions{})
		facts.Cluster, err = asRead(cluster, err, "get clusters in the namespace "+is.Namespace)
		return err
	case by != nil:
		request, err := api.ClusterRequests(by.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
		facts.ClusterRequest, err = asRead(request, err, "get clusterrequests in the namespace "+by.Namespace)
		return err
	}
	return nil
}
