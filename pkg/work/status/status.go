// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status computes the status of a work from the observations of a round about its manifests, and from the previous status.
package status

import (
	"errors"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// FeedbackSynced is the type of a manifest's condition for its feedback.
const FeedbackSynced = "StatusFeedbackSynced"

// The reasons of conditions, as in Open Cluster Management.
const (
	reasonApplied            = "AppliedManifestComplete"            // the manifest is applied
	reasonNotApplied         = "AppliedManifestFailed"              // the manifest could not be applied; the message has the error
	reasonIgnoreFields       = "AppliedManifestSSAIgnoreFieldError" // the fields to ignore could not be determined, so the manifest is not applied
	reasonWorkApplied        = "AppliedManifestWorkComplete"        // all manifests are applied
	reasonWorkNotApplied     = "AppliedManifestWorkFailed"          // some are not
	reasonAvailable          = "ResourceAvailable"                  // the object is in the cluster
	reasonNotAvailable       = "ResourceNotAvailable"               // it is not
	reasonIncomplete         = "IncompleteResourceMeta"             // the manifest does not identify its object
	reasonFetching           = "FetchingResourceFailed"             // the agent could not read the object
	reasonExisted            = "ObjectExisted"                      // the object existed before the work
	reasonContested          = "ChangedRepeatedly"                  // another program undoes what the agent applies
	reasonSynced             = "StatusFeedbackSynced"               // all values that the work asks for are in its status
	reasonNoFeedback         = "NoStatusFeedbackSynced"             // the work has no feedback rules
	reasonSyncFailed         = "StatusFeedbackSyncFailed"           // some values could not be read; the message says which
	reasonAllAvailable       = "ResourcesAvailable"                 // all objects are in the cluster
	reasonSomeNotAvailable   = "ResourcesNotAvailable"              // some are not
	reasonStatusUnknown      = "ResourcesStatusUnknown"             // it is not known whether some of them are in the cluster
	prefixOfRules            = "ConditionRule"
	reasonStatusTooLarge     = "StatusTooLarge"  // the feedback is larger than a status may be
	conditionStatusTruncated = "StatusTruncated" // feedback was left out of the status
)

// ErrIgnoreFields is wrapped by errors of the ignoreFields of a manifest, which have a reason of their own.
var ErrIgnoreFields = errors.New("ignoreFields")

// MaxMessage is the maximum length of the message of a condition, in bytes. It is enough for errors of servers, and small enough for a thousand
// manifests.
const MaxMessage = 1024

const cutMark = " … (cut)"

// Cut returns a message as the hub stores it in a condition: plain text of limited length. If it was cut, its end indicates that.
func Cut(message string) string { return cut(bounds.Plain(message), MaxMessage) }

func cut(message string, most int) string {
	if len(message) > most {
		message = message[:most-len(cutMark)]
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(message); i++ {
			message = message[:len(message)-1]
		}
		message += cutMark
	}
	return strings.ToValidUTF8(message, "?")
}

// Makes reports whether a rule may set a condition of the type. Rules may not set those that the agent itself writes. If a type is invalid for the
// API, the hub would reject the whole status.
func Makes(condition string) bool {
	switch condition {
	case workv1.ManifestApplied, workv1.ManifestContested, workv1.ManifestAdopted, FeedbackSynced, workv1.WorkDeleting, conditionStatusTruncated:
		return false
	}
	return len(validation.IsQualifiedName(condition)) == 0
}

// ByRule reports whether a rule has set a condition, of a manifest or of a work.
func ByRule(c *metav1.Condition) bool { return strings.HasPrefix(c.Reason, prefixOfRules) }

// Round holds the observations about a work.
type Round struct {
	// Generation is the generation of the work whose manifests these are.
	Generation int64
	Now        metav1.Time
	// Manifests are all manifests, in the order of the spec.
	Manifests []Manifest
}

// Manifest holds the observations about one manifest.
type Manifest struct {
	// Meta has at least the ordinal. Without resource, version or name the state of the object is unknown.
	Meta workv1.ManifestResourceMeta
	// Applied is nil if the manifest was not tried: the previous conditions stay.
	Applied *Applied
	// Seen is nil if the object was not read: the previous conditions stay.
	Seen *Seen
	// Frozen preserves Complete while the object cannot be read: see the function Frozen.
	Frozen bool
}

// Applied is the outcome of applying a manifest, or of skipping that because nothing has changed.
type Applied struct {
	// Err is nil if it was applied. An error that wraps ErrIgnoreFields has a reason of its own.
	Err error
	// Contested describes which other program changes the object repeatedly; empty if none does.
	Contested string
	// Replaced is why the object is replaced as a whole by the strategy Update; nil if it is not.
	Replaced error
	// Adoption is whether the object existed before the work; AdoptionUnknown if nothing new is known.
	Adoption Adoption
}

// Adoption is whether an object existed before its work.
type Adoption int

const (
	// AdoptionUnknown preserves the previous condition.
	AdoptionUnknown Adoption = iota
	// Created means that the work created the object.
	Created
	// Adopted means that the object existed before, and is deleted with the work.
	Adopted
	// AdoptedToStay means that the object existed before, and stays when the work is deleted.
	AdoptedToStay
)

// Seen holds the observations of the object of a manifest.
type Seen struct {
	// Err is the error of reading the object. If it is not nil, the other fields are ignored. Not found is a valid observation.
	Err error
	// FeedbackRules is whether the work has feedback rules for the object.
	FeedbackRules bool
	Feedback      []workv1.FeedbackValue
	FeedbackErr   error
	// Conditions are set by rules.
	Conditions []metav1.Condition
	// AvailableWaits means that rules define Available, and were not evaluated yet: nothing else sets it in the meantime.
	AvailableWaits bool
}

// Done reports whether a work is complete at its current generation, so that nothing more is done for it. An edit of the spec starts it again.
func Done(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, workv1.WorkComplete)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation && ByRule(c)
}

// AppliedAt reports whether a manifest was applied at a generation of the work.
func AppliedAt(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, workv1.ManifestApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// Frozen reports whether a manifest is not applied because its object is complete. conditions are those of the previous status, and rules are the
// current rules of the object. unchanged is whether the manifest is the one that was complete, as far as is known: one that was edited is applied,
// and one of which nothing is known is not, so that no Job runs twice.
func Frozen(conditions []metav1.Condition, rules []workv1.ConditionRule, unchanged bool) bool {
	c := meta.FindStatusCondition(conditions, workv1.ManifestComplete)
	if c == nil || c.Status != metav1.ConditionTrue || !ByRule(c) || !unchanged {
		return false
	}
	for i := range rules {
		if rules[i].Condition == workv1.ManifestComplete {
			return true
		}
	}
	return false
}

func appliedCondition(a *Applied, generation int64) metav1.Condition {
	c := metav1.Condition{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	switch {
	case a.Err == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonApplied, "Apply manifest complete"
		if a.Replaced != nil {
			c.Message += ": the object is replaced as a whole, also what others set in it, since the server does not apply it: " + a.Replaced.Error()
		}
	case errors.Is(a.Err, ErrIgnoreFields):
		c.Reason, c.Message = reasonIgnoreFields, "Failed to process ignoreFields: "+a.Err.Error()
	default:
		c.Reason, c.Message = reasonNotApplied, "Failed to apply manifest: "+a.Err.Error()
	}
	c.Message = Cut(c.Message)
	return c
}

// availableCondition reports whether the object exists, which does not mean that it is ready.
func availableCondition(m *Manifest) metav1.Condition {
	c := metav1.Condition{Type: workv1.ManifestAvailable, Status: metav1.ConditionUnknown}
	switch {
	case m.Meta.Resource == "" || m.Meta.Version == "" || m.Meta.Name == "":
		c.Reason, c.Message = reasonIncomplete, "Resource meta is incomplete"
	case m.Seen.Err == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonAvailable, "Resource is available"
	case apierrors.IsNotFound(m.Seen.Err):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNotAvailable, "Resource is not available"
	default:
		c.Reason, c.Message = reasonFetching, Cut("Failed to fetch resource: "+m.Seen.Err.Error())
	}
	return c
}

func feedbackCondition(s *Seen) metav1.Condition {
	c := metav1.Condition{Type: FeedbackSynced, Status: metav1.ConditionTrue, Reason: reasonSynced}
	switch {
	case s.FeedbackErr != nil:
		c.Status, c.Reason = metav1.ConditionFalse, reasonSyncFailed
		c.Message = Cut("Sync status feedback failed with error " + s.FeedbackErr.Error())
	case !s.FeedbackRules:
		c.Reason = reasonNoFeedback
	}
	return c
}
