// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

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
			allowed, err := h.mayI(ctx, key+":"+value, key+":*", "*")
			if err != nil || !allowed {
				return diagnosis.Found(false), err
			}
		}
	}
	return diagnosis.Found(true), nil
}

// mayI reports whether the user may write a label with one of these names.
func (h *HubView) mayI(ctx context.Context, names ...string) (bool, error) {
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
