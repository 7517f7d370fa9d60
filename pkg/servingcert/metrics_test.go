// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"testing"
	"time"

	"k8s.io/component-base/metrics/testutil"
)

// The metric is the expiry time of the current certificate, also after it was renewed.
func TestMetric_CertificateExpiry(t *testing.T) {
	clock := newClock()
	m := mustNew(t.Context(), t, testConfig(newKubernetes(), nil, clock))
	told := func() float64 {
		t.Helper()
		value, err := testutil.GetGaugeMetricValue(expiration)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	first := m.leaf.Load()
	if got, want := told(), float64(first.notAfter.Unix()); got != want || first.notAfter.Before(begin) {
		t.Errorf("it ends at %v, the metric says %v", want, got)
	}
	clock.SetTime(first.renewAt.Add(time.Second))
	mustSync(t.Context(), t, m)
	if renewed := m.leaf.Load(); renewed == first || told() != float64(renewed.notAfter.Unix()) {
		t.Errorf("renewed, it ends at %v, the metric says %v", renewed.notAfter.Unix(), told())
	}
}
