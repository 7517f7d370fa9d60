// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package finishedworks

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

var worksDescription = prometheus.NewDesc("clusterhub_works",
	"ManifestWorks by whether they are applied to their clusters, and whether their objects are available there.", []string{"applied", "available"}, nil)

// values are the label values of the condition statuses.
var values = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "true", metav1.ConditionFalse: "false", metav1.ConditionUnknown: "unknown"}

func newTally() *kit.Tally[*workv1.ManifestWork] {
	var zero [][]string
	for _, applied := range values {
		for _, available := range values {
			zero = append(zero, []string{applied, available})
		}
	}
	return kit.NewTally(worksDescription, func(w *workv1.ManifestWork) []string {
		return []string{valueOf(w, workv1.WorkApplied), valueOf(w, workv1.WorkAvailable)}
	}, zero...)
}

// valueOf returns the label value of a condition. It is unknown if the agent has not reported the condition, or if its status is not valid.
func valueOf(w *workv1.ManifestWork, condition string) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, condition); c != nil && values[c.Status] != "" {
		return values[c.Status]
	}
	return values[metav1.ConditionUnknown]
}
