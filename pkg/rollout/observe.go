// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a work that count.
const (
	applied     = "Applied"
	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
	complete    = "Complete"
)

// Progress is the progress of a work in its cluster.
type Progress int

const (
	// Unapplied means that the work is not known to be applied at its current generation.
	Unapplied Progress = iota
	// Progresses means that the work is applied, and its resources are not ready yet.
	Progresses
	// Fails means that the work is applied, and does not work.
	Fails
	// Succeeds means that the work is applied, and its resources are ready.
	Succeeds
)

// WorkStatus is the status of a work that an agent has reported.
type WorkStatus struct {
	// Generation is the generation of the work.
	Generation int64
	Conditions []metav1.Condition
	// Manifests are the manifests with known values.
	Manifests []ManifestStatus
}

// Observation is the result of observing a WorkStatus.
type Observation struct {
	Progress Progress
	// Since is the last transition time of the deciding condition. It may be before the current generation.
	Since time.Time
	// Waits names the thing that the work waits for, or that has failed.
	Waits string
}

// Observe judges a work by the status of its generation. If condition rules set the condition Progressing, it decides, with Degraded, as in Open
// Cluster Management. Otherwise the decision depends on what is known of every work: that it is applied, that its resources are available, and the
// readiness of well-known kinds. byRules reports that the work has a rule for Progressing: then Observe waits for the condition while it does not
// exist.
func Observe(s WorkStatus, byRules bool) Observation {
	o, ready := observeApplied(s)
	if !ready {
		return o
	}
	p := meta.FindStatusCondition(s.Conditions, progressing)
	if p != nil || byRules {
		return observeRules(s, p)
	}
	if d := meta.FindStatusCondition(s.Conditions, degraded); d != nil && d.Status == metav1.ConditionTrue {
		if d.ObservedGeneration != s.Generation {
			return unobserved(d, s.Generation)
		}
		return Observation{Progress: Fails, Since: d.LastTransitionTime.Time, Waits: "degraded" + because(d.Message)}
	}
	if c := meta.FindStatusCondition(s.Conditions, complete); c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.Generation {
		return Observation{Progress: Succeeds, Since: c.LastTransitionTime.Time}
	}
	a := meta.FindStatusCondition(s.Conditions, available)
	switch {
	case a == nil:
		return Observation{Progress: Progresses, Waits: "applied; waits to be available"}
	case a.ObservedGeneration != s.Generation:
		return Observation{Progress: Progresses, Waits: fmt.Sprintf("applied; waits to be available at generation %d", s.Generation)}
	case a.Status != metav1.ConditionTrue:
		return Observation{Progress: Progresses, Since: a.LastTransitionTime.Time, Waits: "applied; waits to be available" + because(a.Message)}
	}
	for i := range s.Manifests {
		if progress, waits := s.Manifests[i].ready(); progress != Succeeds {
			return Observation{Progress: progress, Waits: waits}
		}
	}
	return Observation{Progress: Succeeds, Since: a.LastTransitionTime.Time}
}

// observeApplied judges the condition Applied. ready reports whether there is more to judge.
func observeApplied(s WorkStatus) (o Observation, ready bool) {
	a := meta.FindStatusCondition(s.Conditions, applied)
	switch {
	case a == nil:
		return Observation{Waits: "waits to be applied"}, false
	case a.ObservedGeneration != s.Generation:
		return Observation{Waits: fmt.Sprintf("waits to be applied at generation %d", s.Generation)}, false
	case a.Status != metav1.ConditionTrue:
		return Observation{Since: a.LastTransitionTime.Time, Waits: "not applied" + because(a.Message)}, false
	}
	return Observation{}, true
}

// observeRules judges a work by its condition Progressing, with the semantics of Open Cluster Management.
func observeRules(s WorkStatus, p *metav1.Condition) Observation {
	if p == nil {
		return Observation{Waits: "applied; waits for the condition Progressing, which a rule sets"}
	}
	if p.ObservedGeneration != s.Generation {
		return unobserved(p, s.Generation)
	}
	d := meta.FindStatusCondition(s.Conditions, degraded)
	if d != nil && d.ObservedGeneration != s.Generation {
		return unobserved(d, s.Generation)
	}
	since := p.LastTransitionTime.Time
	switch {
	case p.Status == metav1.ConditionFalse:
		return Observation{Progress: Succeeds, Since: since}
	case p.Status == metav1.ConditionTrue && d != nil && d.Status == metav1.ConditionTrue:
		return Observation{Progress: Fails, Since: since, Waits: "degraded" + because(d.Message)}
	}
	return Observation{Progress: Progresses, Since: since, Waits: "progressing" + because(p.Message)}
}

func unobserved(c *metav1.Condition, generation int64) Observation {
	return Observation{Waits: fmt.Sprintf("waits for the condition %s at generation %d", c.Type, generation)}
}

// maxMessage is the maximum length of an agent's message in ours.
const maxMessage = 120

// because returns a message of an agent in one line.
func because(message string) string {
	message = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(message, ""), func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
	if message == "" {
		return ""
	}
	for i := range message {
		if i > maxMessage {
			return ": " + message[:i] + "…"
		}
	}
	return ": " + message
}
