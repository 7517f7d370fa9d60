// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestHeavier_MeasuresSentBytes(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for what, object := range map[string]any{
		"a text":               &metav1.ObjectMeta{Name: long},
		"a key":                &metav1.ObjectMeta{Labels: map[string]string{long: ""}},
		"a value":              &metav1.ObjectMeta{Annotations: map[string]string{"": long}},
		"bytes":                &runtime.RawExtension{Raw: []byte(long)},
		"a text in a list":     &metav1.ObjectMeta{Finalizers: []string{long}},
		"a text by a pointer":  &corev1.PodSpec{RuntimeClassName: &long},
		"an entry of an entry": &corev1.PodSpec{Containers: []corev1.Container{{Command: []string{long}}}},
		"empty texts":          &metav1.ObjectMeta{Finalizers: make([]string, 334)},
		"empty entries":        &metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, 84)},
	} {
		if !Heavier(object, 999) {
			t.Errorf("%s: no more than 999", what)
		}
		if Heavier(object, 1020) {
			t.Errorf("%s: more than 1020", what)
		}
	}
	// Times have a zone behind a pointer, with all of its rules.
	if now := metav1.Now(); Heavier(&metav1.ObjectMeta{CreationTimestamp: now, DeletionTimestamp: &now}, 0) {
		t.Error("a time has weight")
	}
}

func TestFirst_CountsRemaining(t *testing.T) {
	faults := func(n int) (errs field.ErrorList) {
		for i := range n {
			errs = append(errs, field.Required(field.NewPath("a").Index(i), ""))
		}
		return errs
	}
	for _, n := range []int{0, 1, mostFaults} {
		if got := First(faults(n)); len(got) != n {
			t.Errorf("%d of %d", len(got), n)
		}
	}
	all := faults(mostFaults + 9)
	got := First(all)
	if len(got) != mostFaults+1 || !strings.Contains(got[mostFaults].Error(), "9 more") || all[mostFaults].Type != field.ErrorTypeRequired {
		t.Errorf("%d: %v", len(got), got[len(got)-1])
	}
}
