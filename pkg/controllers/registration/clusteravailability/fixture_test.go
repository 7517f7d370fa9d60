// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// says returns status and reason of a condition, and the taints.
func (f *fixture) says(condition string) (string, []string) {
	f.Helper()
	cluster := f.cluster()
	var keys []string
	for _, taint := range cluster.Spec.Taints {
		keys = append(keys, taint.Key+":"+string(taint.Effect))
	}
	if c := meta.FindStatusCondition(cluster.Status.Conditions, condition); c != nil {
		return string(c.Status) + " " + c.Reason, keys
	}
	return "", keys
}

func (f *fixture) expect(condition, want string, taints ...string) {
	f.Helper()
	got, keys := f.says(condition)
	if got != want {
		f.Errorf("%s is %q, want %q", condition, got, want)
	}
	if taints != nil {
		if taints[0] == "" {
			taints = nil
		}
		if diff := cmp.Diff(taints, keys); diff != "" {
			f.Errorf("taints (-want +got):\n%s", diff)
		}
	}
}

// set writes a condition as the agent or another controller does.
func (f *fixture) set(condition string, status metav1.ConditionStatus, reason string) {
	f.Helper()
	cluster := f.cluster()
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason})
	if err := f.c.Status().Update(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
}
