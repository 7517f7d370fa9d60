// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/lease"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// renewing runs the lease task, and the status task, which learns the interval of the renewals.
func renewing(w *agenttest.World) (*health.Health, *agenttest.Facts, func()) {
	view, readiness := hub.NewView(60), &health.Health{}
	reports, facts := w.Status(view, &hub.ClusterConfig{})
	stop := w.Run(w.Session(), lease.New(view, readiness), reports)
	agenttest.Pass(time.Minute)
	return readiness, facts, stop
}

func TestLease_IsRenewedAtIntervalOfHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		readiness, _, stop := renewing(w)
		before := w.Lease()
		c := w.Cluster()
		c.Spec.LeaseDurationSeconds = 20
		w.Update(c)
		agenttest.Pass(2 * time.Minute) // until it has the new interval
		asked := w.Asked("update leases")
		agenttest.Pass(10 * time.Minute)
		if n := w.Asked("update leases") - asked; n < 30 || n > 40 {
			t.Errorf("in 10 minutes the lease was renewed %d times", n)
		}
		after := w.Lease()
		after.Spec.RenewTime = before.Spec.RenewTime
		if after.Spec.String() != before.Spec.String() {
			t.Errorf("of the lease more than its time has changed: %v", after.Spec)
		}
		if readiness.Ready() != nil {
			t.Error(readiness.Ready())
		}
		stop()
	})
}

func TestLease_ClockSkewStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := renewing(w)
		c := w.Cluster()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: registration.ConditionClockSynced,
			Status: metav1.ConditionFalse, Reason: registration.ReasonClockOutOfSync})
		w.Update(c)
		agenttest.Pass(time.Hour)
		if w.Lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed any more")
		}
		if w.Condition(registration.ConditionClockSynced).Status != metav1.ConditionFalse {
			t.Error("the agent has changed the hub's condition")
		}
		stop()
	})
}

func TestLease_IsRenewedWhileAPIServerIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, facts, stop := renewing(w)
		facts.Set(status.Observation{Unhealthy: errors.New("/livez returned 500: etcd failed")})
		agenttest.Pass(2 * time.Minute)
		if w.Lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed any more")
		}
		stop()
	})
}

// An API server that is starting may reject every identity for a moment.
func TestLease_SessionEndsAfterRepeatedUnauthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for refusals, want := range map[int]error{4: nil, 5: hub.ErrRejected} {
			w := agenttest.NewWorld(t)
			left := refusals
			w.Refuse = func(string, string, string) error {
				if left == 0 {
					return nil
				}
				left--
				return apierrors.NewUnauthorized("unknown authority")
			}
			ctx, cancel := context.WithTimeoutCause(agenttest.Quiet(t), time.Hour, errors.New("nobody has ended it"))
			renewing := lease.New(hub.NewView(60), &health.Health{})
			w.Grant(renewing.Rights)
			err := w.Session().Run(ctx, []task.Task{renewing})
			cancel()
			if errors.Is(err, hub.ErrRejected) != (want != nil) {
				t.Errorf("after %d refusals: %v", refusals, err)
			}
		}
	})
}
