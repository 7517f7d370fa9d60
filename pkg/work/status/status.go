// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status makes the status of a work of what a round has found out about its manifests, and of the status before.
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

// FeedbackSynced is the type of a manifest's condition on its feedback.
const FeedbackSynced = "StatusFeedbackSynced"

// The reasons of conditions, worded as Open Cluster Management has them.
const (
	reasonApplied            = "AppliedManifestComplete"            // the manifest is applied
	reasonNotApplied         = "AppliedManifestFailed"              // the manifest could not be applied; the message has the error
	reasonIgnoreFields       = "AppliedManifestSSAIgnoreFieldError" // the fields to ignore could not be found out, so the manifest is not applied
	reasonWorkApplied        = "AppliedManifestWorkComplete"        // all manifests are applied
	reasonWorkNotApplied     = "AppliedManifestWorkFailed"          // some are not
	reasonAvailable          = "ResourceAvailable"                  // the object is in the cluster
	reasonNotAvailable       = "ResourceNotAvailable"               // it is not
	reasonIncomplete         = "IncompleteResourceMeta"             // the manifest does not say which object it is
	reasonFetching           = "FetchingResourceFailed"             // the agent could not read the object
	reasonExisted            = "ObjectExisted"                      // the object existed before the work
	reasonContested          = "ChangedRepeatedly"                  // another program undoes what the agent applies
	reasonSynced             = "StatusFeedbackSynced"               // all values that the work asks for are in its status
	reasonNoFeedback         = "NoStatusFeedbackSynced"             // the work asks for no values
	reasonSyncFailed         = "StatusFeedbackSyncFailed"           // some values could not be read; the message says which
	reasonAllAvailable       = "ResourcesAvailable"                 // all objects are in the cluster
	reasonSomeNotAvailable   = "ResourcesNotAvailable"              // some are not
	reasonStatusUnknown      = "ResourcesStatusUnknown"             // it is not known of some whether they are
	prefixOfRules            = "ConditionRule"
	reasonStatusTooLarge     = "StatusTooLarge"  // the feedback is larger than a status may be
	conditionStatusTruncated = "StatusTruncated" // feedback was left out of the status
)

// ErrIgnoreFields is wrapped by errors of the ignoreFields of a manifest, which have a reason of their own.
var ErrIgnoreFields = errors.New("ignoreFields")

// MaxMessage is the longest message of a condition, in bytes. It is enough for errors of servers, and kept for each of a thousand manifests.
const MaxMessage = 1024

const cutMark = " … (cut)"

// Cut returns a message as the hub stores it in a condition: plain text that is not too long. One that was cut says so at its end.
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

// Makes is whether a rule may make a condition of the type. Those that the agent itself writes are not for rules. A type that the API does
// not take would have the whole status refused.
func Makes(condition string) bool {
	switch condition {
	case workv1.ManifestApplied, workv1.ManifestContested, workv1.ManifestAdopted, FeedbackSynced, workv1.WorkDeleting, conditionStatusTruncated:
		return false
	}
	return len(validation.IsQualifiedName(condition)) == 0
}

// ByRule is whether a rule has made a condition, of a manifest or of a work.
func ByRule(c *metav1.Condition) bool { return strings.HasPrefix(c.Reason, prefixOfRules) }

// Round is what was found out about a work.
type Round struct {
	// Generation is that of the work whose manifests these are.
	Generation int64
	Now        metav1.Time
	// Manifests are all of them, in the order of the spec.
	Manifests []Manifest
}

// Manifest is what was found out about one manifest.
type Manifest struct {
	// Meta has at least the ordinal. Without resource, version or name nothing can be said of the object.
	Meta workv1.ManifestResourceMeta
	// Applied is nil if it was not tried: what was known before stays.
	Applied *Applied
	// Seen is nil if it was not looked for: what was known before stays.
	Seen *Seen
	// Frozen keeps Complete while the object cannot be seen: see Frozen.
	Frozen bool
}

// Applied is what came of applying a manifest, or of not having to.
type Applied struct {
	// Err is nil if it was applied. One that wraps ErrIgnoreFields has a reason of its own.
	Err error
	// Contested says which other program changes the object again and again; empty if none does.
	Contested string
	// Replaced is why the object is replaced as a whole by the strategy Update; nil if it is not.
	Replaced error
	// Adoption says whether the object existed before the work; AdoptionUnknown if nothing new is known.
	Adoption Adoption
}

// Adoption says whether an object existed before its work.
type Adoption int

const (
	// AdoptionUnknown keeps the former condition.
	AdoptionUnknown Adoption = iota
	// Created means that the work created the object.
	Created
	// Adopted means that the object existed before, and is deleted with the work.
	Adopted
	// AdoptedToStay means that the object existed before, and stays when the work is deleted.
	AdoptedToStay
)

// Seen is what was seen of the object of a manifest.
type Seen struct {
	// Err is that of reading the object. If it is not nil, all below does not count. Not found is an answer, too.
	Err error
	// FeedbackRules is whether there are any.
	FeedbackRules bool
	Feedback      []workv1.FeedbackValue
	FeedbackErr   error
	// Conditions are those that rules have made.
	Conditions []metav1.Condition
	// AvailableWaits says that rules make Available, and were not evaluated yet: nothing else says it for them.
	AvailableWaits bool
}

// Done is whether a work is complete, so that nothing more is done for it: at its present generation. An edit of the spec begins anew.
func Done(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, workv1.WorkComplete)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation && ByRule(c)
}

// AppliedAt reports whether a manifest was applied as a generation of the work has it.
func AppliedAt(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, workv1.ManifestApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// Frozen is whether a manifest is not applied because its object is complete. The conditions are those of the status before, and rules are
// those that hold for the object now. unchanged is whether the manifest is the one that was complete, as far as is known: one that was edited
// is applied, and one of which nothing is known is not, so that no Job runs twice.
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

// availableCondition is of what is there, which says nothing of whether it does what it is for.
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
