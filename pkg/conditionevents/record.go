// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditionevents writes an event when a condition of an object changes, for users of kubectl describe. The
// conditions say how the object is; the events stay when it is deleted.
package conditionevents

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// longest is the maximum length of the note of an event, and maxReason that of its reason, in bytes. Reasons of conditions may be longer.
const longest, maxReason = 1023, 128

// Record makes an event of a condition whose status or reason is another than before. It is called once the change is written.
func Record(recorder events.EventRecorder, about runtime.Object, before, after []metav1.Condition, conditionType, action string) {
	was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if isWrong(is) {
		kind = corev1.EventTypeWarning
	}
	Note(recorder, about, kind, is.Reason, action, cmp.Or(is.Message, conditionType+" is "+string(is.Status)))
}

// RecordFault does so with a condition that changes too often to tell of each time: only when it becomes wrong, and when that is over.
func RecordFault(recorder events.EventRecorder, about runtime.Object, before, after []metav1.Condition, conditionType, action string) {
	was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	if was != nil && isWrong(was) || is != nil && isWrong(is) {
		Record(recorder, about, before, after, conditionType, action)
	}
}

// RecordAll does so with each condition. That all fields of a new object have an effect is no event.
func RecordAll(recorder events.EventRecorder, about runtime.Object, before, after []metav1.Condition, action string) {
	for _, condition := range after {
		if condition.Type != fieldsIgnored || condition.Status == metav1.ConditionTrue {
			Record(recorder, about, before, after, condition.Type, action)
		}
	}
}

// fieldsIgnored and progressing are conditions of what operators work on. Where other conditions are not True yet, progressing is a reason, and so
// is processing.
const fieldsIgnored, contested, progressing, processing = "FieldsIgnored", "Contested", "Progressing", "Processing"

// isWrong says that a condition tells of something that is wrong. Most are True when all is well. Upstream's that end with Degraded, and
// FieldsIgnored, are False then, and Progressing is either.
func isWrong(condition *metav1.Condition) bool {
	switch {
	case condition.Type == progressing, condition.Reason == progressing, condition.Reason == processing:
		return false
	case strings.HasSuffix(condition.Type, "Degraded"), condition.Type == fieldsIgnored, condition.Type == contested:
		return condition.Status != metav1.ConditionFalse
	}
	return condition.Status != metav1.ConditionTrue
}

// Note makes an event of whatever else there is to tell. Without a recorder, as in a command that ends at once, it does nothing.
func Note(recorder events.EventRecorder, about runtime.Object, kind, reason, action, message string) {
	if recorder == nil {
		return
	}
	recorder.Eventf(about, nil, kind, Cut(reason, maxReason), action, "%s", Cut(message, longest))
}

// Cut is a text of so many bytes at most. It ends with a whole character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
