// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/feedback"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

// reportEvery is the minimum interval between two writes of a status in which only feedback and the results of rules have changed, so that an object
// that changes all the time costs the hub little.
const reportEvery = 5 * time.Second

// evaluator reads from objects what the status reports.
type evaluator struct {
	feedback feedback.Options
	rules    *rules.Cache
	paces    *paces
}

// evaluate returns what the status reports of an object, and the delay until its rules may be evaluated.
func (e *evaluator) evaluate(ctx context.Context, work string, one *item, have *unstructured.Unstructured) (seen *status.Seen, wait time.Duration, err error) {
	seen = &status.Seen{FeedbackRules: len(one.config.FeedbackRules) > 0}
	if seen.FeedbackRules {
		seen.Feedback, seen.FeedbackErr = feedback.Read(have, one.config.FeedbackRules, e.feedback)
	}
	if len(one.config.ConditionRules) == 0 {
		return seen, 0, nil
	}
	wait = e.paces.begin(work)
	if wait > 0 {
		// The previous results of the rules stay.
		seen.AvailableWaits = slices.ContainsFunc(one.config.ConditionRules, func(r workv1.ConditionRule) bool {
			return r.Condition == workv1.ManifestAvailable
		})
		return seen, wait, nil
	}
	seen.Conditions, err = e.evaluateRules(ctx, work, one.config.ConditionRules, have)
	return seen, 0, err
}

// evaluateRules evaluates rules and records the cost.
func (e *evaluator) evaluateRules(ctx context.Context, work string, from []workv1.ConditionRule, have *unstructured.Unstructured) (conditions []metav1.Condition, err error) {
	var cost uint64
	defer func() { e.paces.recordCost(work, cost) }()
	set := e.rules.Set(from)
	conditions, cost, err = set.Evaluate(ctx, have)
	cost += compiling * uint64(set.Compiled())
	return conditions, err
}

// statusOfMissing returns what the status reports of an object that does not exist.
func statusOfMissing(t apply.Target) *status.Seen {
	return &status.Seen{Err: apierrors.NewNotFound(t.GroupResource(), t.Name)}
}

// hubWorks writes works on the hub.
type hubWorks struct {
	workclient.ManifestWorkInterface
}

// isCurrent returns a conflict if the work on the hub differs from this one. A deleted work does not come back.
func (h hubWorks) isCurrent(ctx context.Context, work *workv1.ManifestWork) error {
	live, err := h.Get(ctx, work.Name, metav1.GetOptions{})
	if err != nil && !apply.IsGone(err) {
		return err
	}
	if err != nil || live.UID != work.UID || live.Generation != work.Generation ||
		(live.DeletionTimestamp == nil) != (work.DeletionTimestamp == nil) {
		return apierrors.NewConflict(workv1.Resource("manifestworks"), work.Name, errors.New("the hub has a newer one"))
	}
	return nil
}

// report writes the status of a work, if it differs from that on the hub. It returns the delay until the next call, or 0.
func (h hubWorks) report(ctx context.Context, work *workv1.ManifestWork, s *state, items []*item) (later time.Duration, err error) {
	round := status.Round{Generation: work.Generation, Now: metav1.Now()}
	for _, one := range items {
		said := status.Manifest{Meta: one.meta, Frozen: one.frozen}
		if one.refused != nil {
			said.Applied, said.Seen = &status.Applied{Err: one.refused}, &status.Seen{Err: one.refused}
		} else if last := s.manifests[one.manifest.Target]; last != nil && last.seen != nil {
			said.Applied, said.Seen = &status.Applied{Err: last.err, Contested: last.repairs.contested(round.Now.Time), Adoption: last.adoption, Replaced: last.replaced}, last.seen
		}
		round.Manifests = append(round.Manifests, said)
	}
	next := status.Next(&work.Status, round)
	if equality.Semantic.DeepEqual(work.Status, *next) {
		return 0, nil
	}
	if wait := reportEvery - time.Since(s.reported); wait > 0 && sameConditions(work.Status.Conditions, next.Conditions) {
		return wait, nil
	}
	s.reported = time.Now()
	return 0, h.patchStatus(ctx, work, *next)
}

// sameConditions reports whether the conditions of a work have the same statuses, for the same generation. The results of rules may differ.
func sameConditions(before, after []metav1.Condition) bool {
	for i := range after {
		was := meta.FindStatusCondition(before, after[i].Type)
		if was == nil || was.Status != after[i].Status && !status.ByRule(was) || was.ObservedGeneration != after[i].ObservedGeneration {
			return false
		}
	}
	return len(before) == len(after)
}

// maxLeft is the maximum number of remaining objects in the message of a work that is being deleted, and maxLeft that of bytes of the message.
const maxLeft, maxLeftText = 3, 1000

// reportDeleting sets the condition that a work is being deleted, and what it waits for. The message starts with upstream's.
func (h hubWorks) reportDeleting(ctx context.Context, work *workv1.ManifestWork, left []string) error {
	message := "ManifestWork is being deleted"
	if n := len(left); n > 0 {
		message += "; waits for " + strings.Join(left[:min(n, maxLeft)], "; ")
		if n > maxLeft {
			message += fmt.Sprintf("; and %d more", n-maxLeft)
		}
		if len(message) > maxLeftText {
			message = strings.ToValidUTF8(message[:maxLeftText], "") + "…"
		}
	}
	next := *work.Status.DeepCopy()
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: "WorkDeleting",
		Message: message, ObservedGeneration: work.Generation})
	return h.patchStatus(ctx, work, next)
}

// patchStatus writes the status of a work, if it differs from the current one and the work is unchanged since it was read. It updates the work to
// what the hub returns.
func (h hubWorks) patchStatus(ctx context.Context, work *workv1.ManifestWork, next workv1.ManifestWorkStatus) error {
	if equality.Semantic.DeepEqual(work.Status, next) {
		return nil
	}
	if next.ResourceStatus.Manifests == nil {
		next.ResourceStatus.Manifests = []workv1.ManifestCondition{}
	}
	return h.patch(ctx, work, map[string]any{}, map[string]any{"status": map[string]any{
		"conditions": next.Conditions, "resourceStatus": map[string]any{"manifests": next.ResourceStatus.Manifests}}}, "status")
}

func (h hubWorks) setFinalizers(ctx context.Context, work *workv1.ManifestWork, finalizers []string) error {
	return h.patch(ctx, work, map[string]any{"finalizers": finalizers}, map[string]any{})
}

func (h hubWorks) patch(ctx context.Context, work *workv1.ManifestWork, metadata, patch map[string]any, subresource ...string) error {
	metadata["uid"], metadata["resourceVersion"] = work.UID, work.ResourceVersion
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	after, err := h.Patch(ctx, work.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresource...)
	if err != nil {
		return err
	}
	*work = *after
	return nil
}
