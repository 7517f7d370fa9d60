// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// approval returns the steps that accept a cluster without an admin, once: a cluster that is denied later stays denied.
func (p *pass) approval() []kit.Step {
	return []kit.Step{
		{Name: "check that the driver approves", Do: p.checkApproval},
		{Name: "check that no other cluster claims the identity", Do: p.checkUndisputed},
		{Name: "accept the cluster", Do: p.approve},
	}
}

// checkApproval ends the reconciliation unless the cluster's driver approves the cluster.
func (p *pass) checkApproval(context.Context) error {
	if _, done := p.cluster.Annotations[registration.AnnotationAutoAccepted]; done || registration.CheckName(p.name) != nil {
		return errDone
	}
	by, err := p.Drivers.For(p.cluster)
	if err != nil {
		return errDone // an admin may know better
	}
	if !by.AutoApproves(p.cluster) {
		if explainer, ok := by.(driver.Explainer); ok {
			if why := explainer.WhyNot(p.cluster); why != "" {
				p.reportNotApproved(why)
			}
		}
		return errDone
	}
	p.driver = by
	return nil
}

// checkUndisputed ends the reconciliation if another cluster has or claims the same identity. Then it records an event and requests another check.
func (p *pass) checkUndisputed(ctx context.Context) error {
	planned, err := p.identities.plan(p.cluster)
	if err != nil {
		return errDone // an admin may know better
	}
	what := p.identities.exclusive(planned)
	if what == "" {
		return nil
	}
	why := "Its identity belongs to the cluster %q"
	other, err := p.identities.holder(ctx, p.name, what)
	if err == nil && other == "" {
		why = "The cluster %q claims its identity, too"
		other, err = p.identities.claimant(ctx, p.name, what, func(*clusterv1.ManagedCluster) bool { return true })
	}
	if err != nil || other == "" {
		return err
	}
	p.reportNotApproved(fmt.Sprintf(why, other) + ": " + what)
	return kit.Requeue(claimInterval)
}

// approve accepts the cluster in the name of its driver.
func (p *pass) approve(ctx context.Context) error {
	_, err := kit.Patch(ctx, p.client, p.cluster, func(c *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, registration.AnnotationAutoAccepted, p.clock.Now().UTC().Format(time.RFC3339))
		c.Spec.HubAcceptsClient = true
	})
	if err != nil {
		return fmt.Errorf("accepting the cluster: %w", err)
	}
	p.event(corev1.EventTypeNormal, "ManagedClusterAutoApproved",
		fmt.Sprintf("The cluster %s is accepted by the registration driver %q", p.name, p.driver.Name()))
	return nil
}

// reportNotApproved records an event on why a cluster waits for an admin although it may seem to need none.
func (p *pass) reportNotApproved(why string) {
	p.event(corev1.EventTypeWarning, "ManagedClusterNotAutoApproved",
		why+". An admin must decide: kubectl hub accept --clusters "+p.name)
}
