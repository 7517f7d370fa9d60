// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package conditionevents

import (
	"cmp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
)

func TestRecord_RecordsChanges(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Other"}, {Type: "Granted", Status: status, Reason: reason, Message: message}}
	}
	long := strings.Repeat("x", 5000)
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"new":                    {nil, of("True", "Done", "It is done"), "Normal Done It is done"},
		"another reason":         {of("False", "A", ""), of("False", "B", "100% wrong"), "Warning B 100% wrong"},
		"another status":         {of("True", "A", ""), of("False", "A", "no"), "Warning A no"},
		"another message":        {of("False", "A", "1"), of("False", "A", "2"), ""},
		"no message":             {of("False", "A", "1"), of("True", "A", ""), "Normal A Granted is True"},
		"the same":               {of("True", "A", ""), of("True", "A", ""), ""},
		"none":                   {of("True", "A", ""), nil, ""},
		"a long one":             {nil, of("False", "A", long), "Warning A " + long[:1020] + "…"},
		"a long reason":          {nil, of("False", long, "no"), "Warning " + long[:125] + "… no"},
		"one cut in a character": {nil, of("False", "A", "x"+strings.Repeat("é", 5000)), "Warning A x" + strings.Repeat("é", 509) + "…"},
	} {
		recorder, got := events.NewFakeRecorder(1), ""
		Record(recorder, &corev1.Namespace{}, test.before, test.after, "Granted", "Grant")
		select {
		case got = <-recorder.Events:
		default:
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRecord_WarnsOfFaults: not all conditions are True when all is well.
func TestRecord_WarnsOfFaults(t *testing.T) {
	for _, test := range []struct {
		condition string
		status    metav1.ConditionStatus
		want      string
	}{
		{"Available", metav1.ConditionTrue, "Normal"}, {"Available", metav1.ConditionFalse, "Warning"}, {"Available", metav1.ConditionUnknown, "Warning"},
		{"HubConnectionDegraded", metav1.ConditionFalse, "Normal"}, {"HubConnectionDegraded", metav1.ConditionTrue, "Warning"},
		{"HubConnectionDegraded", metav1.ConditionUnknown, "Warning"}, {"FieldsIgnored", metav1.ConditionTrue, "Warning"},
		{"Progressing", metav1.ConditionFalse, "Normal"}, {"Progressing", metav1.ConditionTrue, "Normal"},
		{"Available=Progressing", metav1.ConditionFalse, "Normal"}, {"Available=Processing", metav1.ConditionFalse, "Normal"},
	} {
		recorder := events.NewFakeRecorder(1)
		kind, reason, _ := strings.Cut(test.condition, "=")
		Record(recorder, &corev1.Namespace{}, nil, []metav1.Condition{{Type: kind, Status: test.status, Reason: cmp.Or(reason, "R")}}, kind, "Look")
		if got, _, _ := strings.Cut(<-recorder.Events, " "); got != test.want {
			t.Errorf("%s is %s: %s, want %s", test.condition, test.status, got, test.want)
		}
	}
}

func TestRecordAll_RecordsEachChange(t *testing.T) {
	of := func(available, ignored metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: "Available", Status: available, Reason: "A", Message: "a "}, {Type: "Applied", Status: "True", Reason: "B", Message: "b "},
			{Type: "FieldsIgnored", Status: ignored, Reason: "F", Message: "f "}}
	}
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"new":                {nil, of("True", "False"), "Normal A a Normal B b "},
		"new, with a field":  {nil, of("False", "True"), "Warning A a Normal B b Warning F f "},
		"one has changed":    {of("True", "True"), of("False", "True"), "Warning A a "},
		"the field has gone": {of("True", "True"), of("True", "False"), ""},
	} {
		recorder, got := events.NewFakeRecorder(10), ""
		RecordAll(recorder, &corev1.Namespace{}, test.before, test.after, "Look")
		for len(recorder.Events) > 0 {
			got += <-recorder.Events
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRecordFault_RecordsFaultsAndRecovery(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Running", Status: status, Reason: reason}}
	}
	well, under, failed := of("True", "AsExpected"), of("False", "Progressing"), of("False", "Failed")
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          int
	}{
		"new and well": {nil, well, 0}, "new and wrong": {nil, failed, 1}, "under way": {well, under, 0}, "done": {under, well, 0},
		"wrong": {under, failed, 1}, "still wrong": {failed, failed, 0}, "over": {failed, well, 1}, "tried again": {failed, under, 1},
	} {
		recorder := events.NewFakeRecorder(10)
		RecordFault(recorder, &corev1.Namespace{}, test.before, test.after, "Running", "Look")
		if got := len(recorder.Events); got != test.want {
			t.Errorf("%s: %d events, want %d", name, got, test.want)
		}
	}
}
