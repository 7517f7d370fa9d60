// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// Heartbeat returns a Runnable for a manager without leader election. It renews the Lease as an elector does, for readers such as kubectl hub
// doctor, and ignores errors. It sets the metric leader_election_master_status, by which alerts find the leader.
func Heartbeat(config *rest.Config, election command.LeaderElection) (manager.Runnable, error) {
	election.Enabled = true
	lock, err := Lock(config, election)
	if err != nil {
		return nil, err
	}
	return &heartbeat{lock: lock.(*heldLock), election: election}, nil
}

// acting returns the metric leader_election_master_status of controller-runtime's registry, which has no function to set it.
func acting() *prometheus.GaugeVec {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "leader_election_master_status",
		Help: "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to " +
			"identify the lease. Please make sure to group by name.",
	}, []string{"name"})
	var registered prometheus.AlreadyRegisteredError
	if errors.As(metrics.Registry.Register(gauge), &registered) {
		if existing, ok := registered.ExistingCollector.(*prometheus.GaugeVec); ok {
			return existing
		}
	}
	return gauge
}

type heartbeat struct {
	lock     *heldLock
	election command.LeaderElection
	record   resourcelock.LeaderElectionRecord
}

// Start implements manager.Runnable.
func (h *heartbeat) Start(ctx context.Context) error {
	ticker := time.NewTicker(h.election.RetryPeriod)
	defer ticker.Stop()
	acts := acting().WithLabelValues(h.election.Name)
	acts.Set(1)
	defer acts.Set(0)
	for {
		if err := h.beat(ctx, h.lock.Identity(), h.election.LeaseDuration); err != nil && ctx.Err() == nil {
			h.lock.holder = "" // so that the Lease is read before the next write
			klog.FromContext(ctx).V(2).Info("The Lease does not say that this process acts", "lease", h.lock.Describe(), "err", err)
		}
		select {
		case <-ctx.Done():
			// Release it as an elector does.
			return h.beat(context.WithoutCancel(ctx), "", time.Second)
		case <-ticker.C:
		}
	}
}

// beat sets the holder of the Lease.
func (h *heartbeat) beat(ctx context.Context, holder string, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, h.election.RenewDeadline)
	defer cancel()
	now := metav1.Now()
	if h.lock.holder != h.lock.Identity() {
		before, _, err := h.lock.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			h.record = resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(duration.Seconds()), AcquireTime: now, RenewTime: now}
			return h.lock.Create(ctx, h.record)
		case err != nil:
			return err
		}
		h.record = *before
		if before.HolderIdentity != h.lock.Identity() {
			h.record.AcquireTime = now
			h.record.LeaderTransitions++
		}
	}
	h.record.HolderIdentity, h.record.LeaseDurationSeconds, h.record.RenewTime = holder, int(duration.Seconds()), now
	return h.lock.Update(ctx, h.record)
}
