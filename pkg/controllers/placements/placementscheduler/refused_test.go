// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// tries runs a round and has the result written n times, each of which must requeue it.
func (f *fixture) tries(n int) {
	f.Helper()
	f.effects = nil
	f.tell()
	if _, err := f.process.Reconcile(f.Context(), everything); err != nil {
		f.Fatal(err)
	}
	for range n {
		if result, err := f.process.Reconcile(f.Context(), request()); err != nil || result.RequeueAfter == 0 {
			f.Fatal(result, err)
		}
		f.tell()
	}
	f.queue.all = nil
}

// A write that is always refused is reported in the placement, once, until it is not refused any more.
func TestRefused_IsReported(t *testing.T) {
	decisions := clusterv1beta1.Resource("placementdecisions")
	for name, refusal := range map[string]error{
		"by a quota":  apierrors.NewForbidden(decisions, "p-decision-1", errors.New("exceeded quota: none")),
		"by a policy": apierrors.NewInvalid(clusterv1beta1.SchemeGroupVersion.WithKind("PlacementDecision").GroupKind(), "p-decision-1", nil),
		"by a bound":  apierrors.NewRequestEntityTooLargeError("too many bytes"),
		"by webhooks": apierrors.NewBadRequest("no: " + strings.Repeat("é", 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, managed("c1", "a=b"), place(-1))
			f.refuse = func(effect string) error {
				if strings.HasSuffix(effect, "p-decision-1") {
					return refusal
				}
				return nil
			}
			f.tries(3)
			if !slices.Equal(f.effects, []string{"status of p"}) {
				t.Errorf("written: %q", f.effects)
			}
			told := f.satisfied()
			if told.Status != metav1.ConditionFalse || told.Reason != "NotAllDecisionsScheduled" || len(told.Message) > 1024 ||
				!strings.HasPrefix(told.Message, "The decisions could not be written: Create of the PlacementDecision ns/p-decision-1: "+refusal.Error()[:20]) {
				t.Errorf("the condition is %+v", told)
			}
			if !meta.IsStatusConditionFalse(f.placement().Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured) {
				t.Errorf("the status is %+v", f.placement().Status)
			}

			f.refuse = nil
			f.queue.Add(request())
			f.settle()
			f.has("p-decision-1 0: c1")
			if f.satisfied().Status != metav1.ConditionTrue {
				t.Errorf("the condition is %+v", f.satisfied())
			}

			// Later, too: the status keeps its transition time.
			since := f.satisfied().LastTransitionTime
			f.clock.SetTime(start.Add(time.Hour))
			f.create(managed("c2", "a=b"))
			f.refuse = func(effect string) error {
				if effect == "status of p-decision-1" {
					return refusal
				}
				return nil
			}
			f.tries(2)
			f.clock.SetTime(start.Add(2 * time.Hour))
			f.tries(1)
			if s := f.placement().Status; s.NumberOfSelectedClusters != 1 || len(s.DecisionGroups) != 1 {
				t.Errorf("the status is %+v", s)
			}
			if told := f.satisfied(); told.Status != metav1.ConditionFalse || !told.LastTransitionTime.Equal(&metav1.Time{Time: since.Add(time.Hour)}) {
				t.Errorf("the condition is %+v", told)
			}
			f.has("p-decision-1 0: c1")
		})
	}
}

// If the status itself is refused, only the log has it.
func TestRefused_StatusRefused(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	f.refuse = func(effect string) error {
		if effect == "status of p" {
			return apierrors.NewRequestEntityTooLargeError("too many bytes")
		}
		return nil
	}
	f.tell()
	if _, err := f.process.Reconcile(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	if _, err := f.process.Reconcile(t.Context(), request()); err == nil || !strings.Contains(err.Error(), "too many bytes") {
		t.Errorf("got %v", err)
	}
	// Another client writes the placement concurrently.
	f.refuse = func(effect string) error {
		if effect == "status of p" {
			return apierrors.NewConflict(clusterv1beta1.Resource("placements"), "p", errors.New("changed"))
		}
		return apierrors.NewBadRequest("no")
	}
	f.label("c1")
	f.tries(2)
	f.has("p-decision-1 0: c1")
}

// In a namespace that is being deleted, placements are deleted as well: nothing is reported.
func TestRefused_TerminatingNamespace(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	ends := apierrors.NewForbidden(clusterv1beta1.Resource("placementdecisions"), "p-decision-1", errors.New("it is being terminated"))
	ends.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	f.refuse = func(string) error { return ends }
	f.tries(2)
	if len(f.placement().Status.Conditions) > 0 {
		t.Errorf("the status is %+v", f.placement().Status)
	}
}

// satisfied returns the condition PlacementSatisfied.
func (f *fixture) satisfied() metav1.Condition {
	f.Helper()
	c := meta.FindStatusCondition(f.placement().Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
	if c == nil {
		f.Fatalf("the status is %+v", f.placement().Status)
	}
	return *c
}
