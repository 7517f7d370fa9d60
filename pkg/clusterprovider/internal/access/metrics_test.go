// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestMetrics_CountIssuedAndFailedTokens(t *testing.T) {
	issued("counting", time.Now(), nil)
	issued("counting", time.Now(), nil)
	issued("counting", time.Now(), errors.New("refused"))
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["provider"] == "counting" {
				got[family.GetName()+" "+labels["result"]] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	if got["clusterhub_access_tokens_issued_total issued"] != 2 || got["clusterhub_access_tokens_issued_total failed"] != 1 ||
		got["clusterhub_access_token_duration_seconds "] != 3 {
		t.Errorf("got %v", got)
	}
}
