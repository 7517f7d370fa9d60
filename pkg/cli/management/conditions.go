// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// NotReconciled is shown for an object without a status of hub-operator.
const NotReconciled = "hub-operator has not processed it yet"

// CurrentCondition returns the condition for the current spec, or one with status Unknown.
func CurrentCondition(conditions []metav1.Condition, generation int64, conditionType string) metav1.Condition {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil || c.ObservedGeneration != 0 && c.ObservedGeneration != generation {
		return metav1.Condition{Status: metav1.ConditionUnknown}
	}
	return *c
}

// ConditionMessage returns the message of a condition, or its reason.
func ConditionMessage(c metav1.Condition) string {
	return command.Printable(cmp.Or(c.Message, c.Reason))
}
