// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// WhyCluster explains why a cluster does not work with the hub.
func (h *HubView) WhyCluster(ctx context.Context, name string) (*diagnosis.Answer, error) {
	facts, err := h.service(ctx, name)
	if err != nil {
		return nil, err
	}
	if facts.ServiceFault == "" {
		if err := h.clusterFacts(ctx, facts); err != nil {
			return nil, err
		}
	}
	a := diagnosis.OfCluster(*facts)
	return &a, nil
}

// WhyMember explains why a cluster is in a set, or is not.
func (h *HubView) WhyMember(ctx context.Context, cluster, set string) (*diagnosis.Answer, error) {
	facts := diagnosis.MemberFacts{Cluster: cluster, Set: set, Now: time.Now()}
	if err := h.memberFacts(ctx, &facts); err != nil {
		return nil, err
	}
	a := diagnosis.OfMember(facts)
	return &a, nil
}

// WhyPlacement explains why a placement chooses a cluster, or does not.
func (h *HubView) WhyPlacement(ctx context.Context, namespace, name, cluster string) (*diagnosis.Answer, error) {
	facts := diagnosis.PlacementFacts{Namespace: namespace, Name: name, Cluster: cluster}
	if err := h.placementFacts(ctx, &facts); err != nil {
		return nil, err
	}
	a := diagnosis.OfPlacement(facts)
	return &a, nil
}

// WhyWork explains why a work is not complete on a cluster. If the cluster is empty, find returns it.
func (h *HubView) WhyWork(ctx context.Context, cluster, name string, find func() (string, error)) (*diagnosis.Answer, error) {
	facts, err := h.service(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if facts.ServiceFault != "" {
		a := diagnosis.OfCluster(*facts)
		return &a, nil
	}
	if cluster == "" {
		cluster, err = find()
		if err != nil {
			return nil, err
		}
		facts.Name = cluster
	}
	work := diagnosis.WorkFacts{Cluster: cluster, Name: name, Now: time.Now()}
	found, err := h.clusters.WorkV1().ManifestWorks(cluster).Get(ctx, name, metav1.GetOptions{})
	work.Work, err = asRead(found, err, "get manifestworks in the namespace "+cluster)
	if err != nil {
		return nil, err
	}
	if err := h.clusterFacts(ctx, facts); err != nil {
		return nil, err
	}
	work.OfCluster = diagnosis.OfCluster(*facts)
	a := diagnosis.OfWork(work)
	return &a, nil
}

// WhyAccessRequest explains what an AccessRequest waits for.
func (h *HubView) WhyAccessRequest(ctx context.Context, namespace, name string) (*diagnosis.Answer, error) {
	service, err := h.service(ctx, "")
	if err != nil {
		return nil, err
	}
	if service.ServiceFault != "" {
		a := diagnosis.OfCluster(*service)
		return &a, nil
	}
	facts := diagnosis.AccessRequestFacts{Namespace: namespace, Name: name, Now: time.Now()}
	if err := h.accessRequestFacts(ctx, &facts); err != nil {
		return nil, err
	}
	a := diagnosis.OfAccessRequest(facts)
	return &a, nil
}

// Access is a question about a permission: may a user do that with a label, a set or a cluster?
type Access struct {
	User, Verb, What string
	// Groups are the groups of the user. Namespace is the namespace to bind a set to.
	Groups    []string
	Namespace string
}

// WhyAccess returns which rule allows a user something, or which is missing.
func (h *HubView) WhyAccess(ctx context.Context, asked Access) (*diagnosis.Answer, error) {
	target, err := h.target(ctx, asked.What)
	if err != nil {
		return nil, err
	}
	target.Namespace = asked.Namespace
	if target.Cluster != "" {
		sets, err := h.setsOf(ctx, target.Cluster)
		if err != nil {
			return nil, err
		}
		target.SetsOf, _ = sets.Get()
	}
	ways, err := diagnosis.Ways(asked.Verb, target)
	if err != nil {
		return nil, err
	}
	facts := diagnosis.AccessFacts{User: asked.User, Groups: asked.Groups, Verb: asked.Verb, Target: target, Ways: ways}
	namespace := asked.Namespace
	if target.Cluster != "" {
		namespace = target.Cluster
	}
	facts.Rules, err = h.rules(ctx, namespace)
	if err != nil {
		return nil, err
	}
	facts.AddMoves()
	if err := h.review(ctx, &facts); err != nil {
		return nil, err
	}
	a := diagnosis.OfAccess(facts)
	return &a, nil
}
