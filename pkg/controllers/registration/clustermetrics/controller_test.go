// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermetrics

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// byLabel handles the clusters with a label of its name.
type byLabel struct {
	driver.Driver
	name string
}

func (d byLabel) Name() string                             { return d.name }
func (d byLabel) Handles(c *clusterv1.ManagedCluster) bool { return c.Labels[d.name] != "" }

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newCluster(d string, accepted, decided bool, conditions ...metav1.Condition) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{d: "x"}, CreationTimestamp: metav1.NewTime(start)}}
	c.Spec.HubAcceptsClient = accepted
	if decided {
		conditions = append(conditions, metav1.Condition{Type: registration.ConditionHubAccepted})
	}
	c.Status.Conditions = conditions
	return c
}

func is(condition string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: condition, Status: status, Message: message, LastTransitionTime: metav1.NewTime(start)}
}

type change = kit.Change[*clusterv1.ManagedCluster]

func newTested(at time.Duration) *collector {
	c := newCollector(driver.Drivers{byLabel{name: "a"}, byLabel{name: "b"}})
	c.clock = clocktesting.NewFakePassiveClock(start.Add(at))
	return c
}

func collected(t *testing.T, c prometheus.Collector, of string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != of {
			continue
		}
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, l := range m.GetLabel() {
				key += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			switch {
			case m.GetHistogram() != nil:
				got[key] = float64(m.GetHistogram().GetSampleCount())
				for _, b := range m.GetHistogram().GetBucket() {
					got[fmt.Sprintf("%s le=%.0f", key, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			default:
				got[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return got
}

func TestCollector_CountsByDriverAndState(t *testing.T) {
	c := newTested(0)
	for _, cluster := range []*clusterv1.ManagedCluster{newCluster("a", true, true), newCluster("a", true, false), newCluster("a", false, true),
		newCluster("b", false, false), newCluster("c", true, true)} {
		c.observe(change{After: cluster, Known: true})
	}
	const of = "clusterhub_managed_clusters driver="
	want := map[string]float64{of + "a state=accepted": 2, of + "a state=denied": 1, of + "a state=waiting": 0,
		of + "b state=accepted": 0, of + "b state=denied": 0, of + "b state=waiting": 1, of + "none state=accepted": 1}
	if got := collected(t, c, "clusterhub_managed_clusters"); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestCollector_CountsByConditions(t *testing.T) {
	c := newTested(0)
	available := newCluster("a", true, true, is(registration.ConditionJoined, metav1.ConditionTrue, ""), is(registration.ConditionAvailable, metav1.ConditionTrue, ""))
	lost := newCluster("a", true, true, is(registration.ConditionJoined, metav1.ConditionTrue, ""), is(registration.ConditionAvailable, metav1.ConditionUnknown, ""))
	c.observe(change{After: available})
	c.observe(change{Before: available, After: lost})
	c.observe(change{After: newCluster("a", false, false)})
	got := collected(t, c, "clusterhub_managed_clusters_by_condition")
	if len(got) != 12 {
		t.Errorf("%d series, want 12", len(got))
	}
	maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
	const of = "clusterhub_managed_clusters_by_condition accepted="
	want := map[string]float64{of + "true available=unknown joined=true": 1, of + "false available=unknown joined=false": 1}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestCollector_ReportsPendingAndSince(t *testing.T) {
	c := newTested(2 * time.Hour)
	younger := newCluster("a", false, false)
	younger.CreationTimestamp = metav1.NewTime(start.Add(time.Hour))
	older, deleted := newCluster("a", false, false), newCluster("a", false, false)
	deleted.DeletionTimestamp = &older.CreationTimestamp
	csr := newCluster("a", true, true, is(registration.ConditionRequestWaits, metav1.ConditionTrue, ""))
	for _, cluster := range []*clusterv1.ManagedCluster{younger, older, deleted, csr, newCluster("a", true, true), newCluster("a", false, true)} {
		c.observe(change{After: cluster})
	}
	look := func(number, age float64) {
		t.Helper()
		got := collected(t, c, "clusterhub_registration_requests_pending")
		const pending = "clusterhub_registration_requests_pending reason="
		if want := map[string]float64{pending + "acceptance": number, pending + "certificate": 1}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		const oldest = "clusterhub_registration_oldest_pending_seconds"
		if got := collected(t, c, oldest)[oldest+" reason=acceptance"]; got != age {
			t.Errorf("the oldest has waited %v seconds, want %v", got, age)
		}
	}
	look(2, 7200)
	c.observe(change{Before: older, After: newCluster("a", true, false)})
	look(1, 3600)
	c.observe(change{Before: younger})
	look(0, 0)
}

func TestCollector_ReportsCertificateExpiry(t *testing.T) {
	for message, ends := range map[string]time.Duration{
		"The client certificate is valid from 2029-12-31T00:00:00Z to 2030-01-01T12:00:00Z":                                  12 * time.Hour,
		"The client certificate, valid from 2029-12-31T00:00:00Z to 2030-01-01T12:00:00Z, could not be renewed: from a to b": 12 * time.Hour,
		"client certificate rotated starting from 2029-12-31 00:00:00 +0000 UTC to 2030-01-03 00:00:00 +0000 UTC":            48 * time.Hour,
		"from 2029-12-31T00:00:00Z to 2030-99-03T00:00:00Z":                                                                  -1,
		"all is well": -1,
	} {
		c := newTested(0)
		before := newCluster("a", true, true)
		c.observe(change{After: before})
		c.observe(change{Before: before, After: newCluster("a", true, true, is(registration.ConditionCertificateRotated, metav1.ConditionTrue, message))})
		const of = "clusterhub_managed_cluster_certificate_expiration_seconds"
		got := collected(t, c, of)
		want := map[bool]float64{true: 1}[ends >= 0]
		if got[of] != want || got[of+" le=21600"] != 0 || ends >= 0 && got[fmt.Sprintf("%s le=%.0f", of, max(ends, 24*time.Hour).Seconds())] != 1 {
			t.Errorf("%q: %v", message, got)
		}
	}
}

func TestCollector_CountsAcceptancesAndJoinDuration(t *testing.T) {
	c := newTested(time.Minute)
	made, byHand := newCluster("a", false, false), newCluster("a", true, false)
	auto, joins := newCluster("b", true, false), newCluster("b", true, true, is(registration.ConditionJoined, metav1.ConditionTrue, ""))
	auto.Annotations = map[string]string{registration.AnnotationAutoAccepted: "2030-01-01T00:00:00Z"}
	joins.Annotations = map[string]string{registration.AnnotationAcceptedAt: "2030-01-01T00:00:30Z"}
	c.observe(change{After: byHand, Known: true}) // another leader has seen it
	c.observe(change{After: joins, Known: true})
	c.observe(change{Before: made, After: byHand})
	c.observe(change{After: byHand})
	c.observe(change{Before: byHand, After: byHand})
	c.observe(change{Before: byHand, After: made})
	c.observe(change{Before: made, After: auto})
	c.observe(change{Before: auto, After: joins})
	c.observe(change{Before: joins, After: joins})
	const acceptances = "clusterhub_acceptances_total by="
	if got, want := collected(t, c, "clusterhub_acceptances_total"), map[string]float64{acceptances + "user": 2, acceptances + "hub": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	const took = "clusterhub_registration_duration_seconds driver=b"
	if got := collected(t, c, "clusterhub_registration_duration_seconds"); got[took] != 1 || got[took+" le=32"] != 1 || got[took+" le=16"] != 0 {
		t.Errorf("one join that took half a minute: %v", got)
	}
}
