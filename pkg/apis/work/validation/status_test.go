// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
)

func condition(name string) metav1.Condition {
	return metav1.Condition{Type: name, Status: "True", Reason: "R", LastTransitionTime: metav1.Unix(1, 0)}
}

func TestValidateManifestWorkStatusUpdate(t *testing.T) {
	const at = "status.resourceStatus.manifests[0]"
	for name, c := range map[string]struct {
		change func(*work.ManifestWorkStatus, *work.ManifestCondition)
		wants  []string
	}{
		"as agents write it": {func(s *work.ManifestWorkStatus, m *work.ManifestCondition) {
			s.Conditions = []metav1.Condition{condition("Applied")}
			m.StatusFeedbacks.Values = []work.FeedbackValue{{Name: "a", Value: work.FieldValue{Type: work.Integer, Integer: new(int64(1))}}}
		}, nil},
		"10 MB of conditions": {func(s *work.ManifestWorkStatus, _ *work.ManifestCondition) {
			c := condition("Applied")
			c.Message = strings.Repeat("x", 10<<20)
			s.Conditions = []metav1.Condition{c}
		}, []string{"status: more than 512000 bytes"}},
		"10 MB of objects": {func(s *work.ManifestWorkStatus, _ *work.ManifestCondition) {
			s.ResourceStatus.Manifests = make([]work.ManifestCondition, 10<<20/50)
		}, []string{"status.resourceStatus.manifests: at most 2048"}},
		"too many objects": {func(s *work.ManifestWorkStatus, _ *work.ManifestCondition) {
			s.ResourceStatus.Manifests = make([]work.ManifestCondition, 2049)
		}, []string{"status.resourceStatus.manifests: at most 2048"}},
		"a condition twice": {func(s *work.ManifestWorkStatus, _ *work.ManifestCondition) {
			s.Conditions = []metav1.Condition{condition("Applied"), condition("Applied")}
		}, []string{"status.conditions[1]: Duplicate"}},
		"a manifest before the first": {func(_ *work.ManifestWorkStatus, m *work.ManifestCondition) { m.ResourceMeta.Ordinal = -1 },
			[]string{at + ".resourceMeta.ordinal: greater than or equal to 0"}},
		"a value twice": {func(_ *work.ManifestWorkStatus, m *work.ManifestCondition) {
			m.StatusFeedbacks.Values = []work.FeedbackValue{{Name: "a", Value: work.FieldValue{Type: work.String}}, {Name: "a"}}
		}, []string{at + ".statusFeedback.values[1]: Duplicate"}},
		"a value of no type": {func(_ *work.ManifestWorkStatus, m *work.ManifestCondition) {
			m.StatusFeedbacks.Values = []work.FeedbackValue{{Name: "a"}}
		}, []string{at + ".statusFeedback.values[0].fieldValue.type: Boolean"}},
		"much JSON": {func(_ *work.ManifestWorkStatus, m *work.ManifestCondition) {
			m.StatusFeedbacks.Values = []work.FeedbackValue{{Name: "a", Value: work.FieldValue{Type: work.JsonRaw, JsonRaw: new(strings.Repeat("x", 1025))}}}
		}, []string{at + ".statusFeedback.values[0].fieldValue.jsonRaw: may not be more than 1024"}},
	} {
		w := workOf(configMap("default", "a"))
		old := w.DeepCopy()
		w.Status.ResourceStatus.Manifests = []work.ManifestCondition{{Conditions: []metav1.Condition{condition("Applied")}}}
		c.change(&w.Status, &w.Status.ResourceStatus.Manifests[0])
		want(t, name, boundstest.Updated(t, scheme, w, old, validation.ValidateManifestWorkStatusUpdate), c.wants...)
	}
}

// TestValidateManifestWorkStatusUpdate_OmitsDuplicates verifies that an error about a duplicate does not repeat the item: it may be long, and the value of
// a Secret.
func TestValidateManifestWorkStatusUpdate_OmitsDuplicates(t *testing.T) {
	w := workOf(configMap("default", "a"))
	old := w.DeepCopy()
	long := work.FeedbackValue{Name: "a", Value: work.FieldValue{Type: work.String, String: new(strings.Repeat("s3cret", 5000))}}
	w.Status.ResourceStatus.Manifests = []work.ManifestCondition{{StatusFeedbacks: work.StatusFeedbackResult{Values: []work.FeedbackValue{long, long}}}}
	errs := boundstest.Updated(t, scheme, w, old, validation.ValidateManifestWorkStatusUpdate)
	const want = "status.resourceStatus.manifests[0].statusFeedback.values[1]: Duplicate value"
	if got := errs.ToAggregate().Error(); got != want {
		t.Errorf("got %d bytes, want %q", len(got), want)
	}
}

func TestValidateAppliedManifestWork(t *testing.T) {
	w := &work.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
	want(t, "an empty one", boundstest.Created(t, scheme, w, validation.ValidateAppliedManifestWork), "spec.hubHash: Required", "spec.manifestWorkName: Required")
	w.Spec = work.AppliedManifestWorkSpec{HubHash: "a", ManifestWorkName: "b"}
	w.Status.AppliedResources = []work.AppliedManifestResourceMeta{{ResourceIdentifier: work.ResourceIdentifier{Resource: "pods", Name: "a"}, Version: "v1"}}
	want(t, "a sound one", boundstest.Created(t, scheme, w, validation.ValidateAppliedManifestWork))
	want(t, "a sound status", boundstest.Updated(t, scheme, w, w, validation.ValidateAppliedManifestWorkUpdate))
	old := w.DeepCopy()
	w.Status.AppliedResources = make([]work.AppliedManifestResourceMeta, 1)
	want(t, "objects without a name", boundstest.Updated(t, scheme, w, old, validation.ValidateAppliedManifestWorkUpdate),
		"status.appliedResources[0].resource: Required", "status.appliedResources[0].name: Required", "status.appliedResources[0].version: Required")
}
