// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// The metric has each existing cluster once, with its last sign of life.
func TestMetrics_ReportLastRenewal(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	b := newBeats(clock)
	renew := func(cluster string) {
		now := metav1.NewMicroTime(clock.Now())
		b.beat(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
	}
	for i := range 10 {
		renew(fmt.Sprint("c", i))
	}
	clock.SetTime(start.Add(100 * time.Second))
	for i := range 7 {
		renew(fmt.Sprint("c", i))
	}
	b.until("c7", time.Minute, false)
	b.silent("c7")
	b.until("c7", time.Minute, false) // its agent reports itself that it is available again
	b.forget("c8")
	b.forget("c8")
	clock.SetTime(start.Add(110 * time.Second))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	h := families[0].GetMetric()[0].GetHistogram()
	got := map[float64]uint64{}
	for _, bucket := range h.GetBucket() {
		got[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
	}
	if h.GetSampleCount() != 9 || got[30] != 8 || got[90] != 8 || got[120] != 9 {
		t.Errorf("%d clusters, of which %v", h.GetSampleCount(), got)
	}
}
