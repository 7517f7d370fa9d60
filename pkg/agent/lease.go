// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// interval is the time between two renewals of the lease, and between two looks at the status.
func (a *agent) interval() time.Duration {
	seconds := a.leaseSeconds.Load()
	if seconds <= 0 {
		seconds = defaultLeaseSeconds
	}
	return time.Duration(seconds) * time.Second
}

func (a *agent) leaseLoop(h *hub, rejected *rejection) *loop {
	said := &said{}
	return &loop{
		what:     "renewing the lease",
		interval: a.interval,
		timeout:  requestTimeout,
		random:   a.random,
		said:     said,
		do: func(ctx context.Context) error {
			err := a.renewLease(ctx, h)
			rejected.observe(err)
			if err != nil {
				err = refused(err)
				a.health.waiting(err.Error())
				return err
			}
			leaseRenewals.Inc()
			a.health.renewed(a.interval())
			return nil
		},
	}
}

// renewLease writes the time into the lease that the hub has made, and nothing else. A clock that the hub finds wrong is
// no reason to stop: the lease says that the agent is alive.
func (a *agent) renewLease(ctx context.Context, h *hub) error {
	leases := h.kube.CoordinationV1().Leases(a.store.get().clusterName)
	lease, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease = lease.DeepCopy()
	lease.Spec.RenewTime = new(metav1.NowMicro())
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// refused says what it may mean that the hub does not let the agent do what it does.
func refused(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the hub does not let this cluster in: it has denied it, or is still accepting it, or has deleted it, and "+
			"then a restart of the agent registers it anew: %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the hub does not know this agent's identity: %w", err)
	}
	return err
}
