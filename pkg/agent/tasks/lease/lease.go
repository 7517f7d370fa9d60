// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease implements the task that renews the agent's lease on the hub.
package lease

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var renewals = metrics.NewCounter(&metrics.CounterOpts{Namespace: "hub_agent", Name: "lease_renewals_total",
	Help: "Number of renewals of the cluster's lease.", StabilityLevel: metrics.ALPHA})

func init() { legacyregistry.MustRegister(renewals) }

// New returns the task. It updates the agent's readiness, and ends the session when the hub no longer knows the agent.
func New(view *hub.View, health *health.Health) task.Task {
	const what = "renewing the lease"
	return task.Task{
		Name:   what,
		Rights: rights.Rights{Hub: rights.Rules{Namespace: []rbacv1.PolicyRule{rights.Rule("coordination.k8s.io", "leases", "get", "update")}}},
		Run: func(ctx context.Context, s task.Session) error {
			rejected := 0
			loop := &task.Loop{What: what, Interval: view.Interval, Timeout: hub.RequestTimeout, Random: s.Random,
				Do: func(ctx context.Context) error {
					err := renew(ctx, s)
					if apierrors.IsUnauthorized(err) {
						rejected++
					} else {
						rejected = 0
					}
					if err != nil {
						err = hub.Refused(err)
						health.Waiting(err.Error())
						if rejected >= hub.Rejections {
							return task.Over(hub.ErrRejected)
						}
						return err
					}
					renewals.Inc()
					health.Renewed(view.Interval())
					return nil
				}}
			return loop.Run(ctx)
		},
	}
}

// renew writes the current time to the lease that the hub has created, and nothing else. It does so even if the hub finds that the clock is wrong:
// the lease shows that the agent is running.
func renew(ctx context.Context, s task.Session) error {
	leases := s.Hub.Kube.CoordinationV1().Leases(s.State.ClusterName)
	lease, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease = lease.DeepCopy()
	lease.Spec.RenewTime = new(metav1.NowMicro())
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
