// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				key += l.GetValue() + " "
			}
			got[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return got
}

func pod(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
}

// Whatever the changes of objects, the counts are those of the existing objects.
func TestTally_CountsExistingObjects(t *testing.T) {
	desc := prometheus.NewDesc("pods", "Pods.", []string{"phase", "restarted"}, nil)
	tally := NewTally(desc, func(p *corev1.Pod) []string {
		if p.Status.Phase == corev1.PodUnknown {
			return nil
		}
		return []string{string(p.Status.Phase), ""}
	}, []string{"Failed", ""})
	events := follower[*corev1.Pod]{tally.Observe}
	all, want := map[int]*corev1.Pod{}, map[string]float64{}
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed, corev1.PodUnknown}
	for range 1000 {
		at, next := rand.N(50), pod(phases[rand.N(len(phases))])
		switch before := all[at]; {
		case before == nil:
			events.OnAdd(next, rand.N(2) == 0)
			all[at] = next
		case rand.N(3) > 0:
			events.OnUpdate(before, next)
			all[at] = next
		case rand.N(2) == 0:
			events.OnDelete(before)
			delete(all, at)
		default:
			events.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: before})
			delete(all, at)
		}
	}
	for _, p := range all {
		if p.Status.Phase != corev1.PodUnknown {
			want[string(p.Status.Phase)+"  "]++
		}
	}
	got := gathered(t, tally)
	if _, told := got["Failed  "]; !told {
		t.Error("what was to be told as 0 is not told")
	}
	maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := gathered(t, Once(func() bool { return false }, tally)); len(got) > 0 {
		t.Errorf("before all objects are known: %v", got)
	}
}

// constant is a metric that is always the same.
type constant struct {
	desc   *prometheus.Desc
	metric prometheus.Metric
}

func (c constant) Describe(to chan<- *prometheus.Desc) { to <- c.desc }
func (c constant) Collect(to chan<- prometheus.Metric) { to <- c.metric }

func TestMoments_BucketsAreBounded(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	m := NewMoments(time.Hour)
	if !m.First().IsZero() {
		t.Error("there is a first of none")
	}
	for i := range 100_000 {
		m.Move(time.Time{}, now.Add(time.Duration(i%48)*time.Hour))
	}
	m.Move(now, now.Add(-72*time.Hour)) // one is renewed
	m.Move(now, time.Time{})            // one is removed
	if len(m.counts) != 49 {
		t.Errorf("100,000 moments take %d steps, want 49", len(m.counts))
	}
	if got, want := m.First(), now.Add(-72*time.Hour); want.Sub(got) < 0 || want.Sub(got) >= time.Hour {
		t.Errorf("the first is %s, want %s", got, want)
	}
	desc := prometheus.NewDesc("ends", "Ends.", nil, nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(constant{desc, m.Histogram(desc, []float64{0, 24 * 3600}, func(at time.Time) float64 { return at.Sub(now).Seconds() })})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sent := families[0].GetMetric()[0].GetHistogram()
	var buckets []string
	for _, b := range sent.GetBucket() {
		buckets = append(buckets, fmt.Sprintf("%.0f:%d", b.GetUpperBound(), b.GetCumulativeCount()))
	}
	text := fmt.Sprint(sent.GetSampleCount(), " ", buckets)
	if want := "99999 [0:2083 86400:52090]"; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestCountWrite_CountsOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes", Help: "Writes."}, []string{"operation", "result"})
	for err, want := range map[error]string{
		apierrors.NewConflict(resource, "p", errors.New("x")):                     outdated,
		apierrors.NewAlreadyExists(resource, "p"):                                 outdated,
		apierrors.NewNotFound(resource, "p"):                                      outdated,
		apierrors.NewForbidden(resource, "p", errors.New("x")):                    refused,
		apierrors.NewInvalid(schema.GroupKind{}, "p", nil):                        refused,
		errors.New("connection refused"):                                          failed,
		&apierrors.StatusError{ErrStatus: metav1.Status{Reason: "ServiceIsAway"}}: failed,
	} {
		writes.Reset()
		CountWrite(writes, "create", err)
		if got := gathered(t, writes); !maps.Equal(got, map[string]float64{"create " + want + " ": 1}) {
			t.Errorf("%v: got %v, want %s", err, got, want)
		}
	}
	writes.Reset()
	CountWrite(writes, "update", nil)
	if got := gathered(t, writes); !maps.Equal(got, map[string]float64{"update written ": 1}) {
		t.Errorf("got %v", got)
	}
}
