// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

func TestCut(t *testing.T) {
	if got := Cut(strings.Repeat("a", MaxMessage)); len(got) != MaxMessage || strings.Contains(got, cutMark) {
		t.Errorf("one that fits was cut to %q", got)
	}
	for range 4 {
		for offset := range 4 {
			got := Cut(strings.Repeat("a", offset) + strings.Repeat("😀", MaxMessage))
			if len(got) > MaxMessage || len(got) < MaxMessage-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, cutMark) {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		}
	}
	if got := Cut("a\xffb"); !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

// many returns the given number of manifests, each changed by a function.
func many(count int, each func(i int, m *Manifest)) []Manifest {
	manifests := make([]Manifest, count)
	for i := range manifests {
		manifests[i] = Manifest{Meta: metaOf(i, fmt.Sprint("cm-", i)), Applied: applied, Seen: there()}
		each(i, &manifests[i])
	}
	return manifests
}

// Complete manifests are left out last: they would be applied again.
func TestNext_RetainsCompleteManifests(t *testing.T) {
	w := newWork(t).round(1, many(1024, func(i int, m *Manifest) {
		m.Meta.Namespace = strings.Repeat("n", 240)
		switch {
		case i == 1023:
			m.Seen.Conditions = []metav1.Condition{byRule("Complete=True", "done")}
		case i < 1000:
			m.Applied = &Applied{Err: errors.New("no")}
		}
	})...)
	last := metaOf(1023, "cm-1023")
	last.Namespace = strings.Repeat("n", 240)
	if len(w.status.ResourceStatus.Manifests) == 1024 || Find(w.status, &last) == nil {
		t.Errorf("%d manifests are left, and not the one that is complete", len(w.status.ResourceStatus.Manifests))
	}
}

// However large the observations are, hub-apiserver accepts the status, which includes the failures. round also checks that the result is
// deterministic.
func TestNext_IsBounded(t *testing.T) {
	long := strings.Repeat("<long>", 12_000)
	rulesOf := func(i int) (conditions []metav1.Condition) {
		for j := range 64 {
			conditions = append(conditions, byRule(fmt.Sprintf("Rule-%d-%d=False", i, j), long))
		}
		return append(conditions, byRule("Complete=True", long), byRule("Progressing=True", long))
	}
	for name, test := range map[string]struct {
		manifests []Manifest
		// kept is the minimum number of manifests that are left.
		kept int
		told string
	}{
		"as usual": {many(100, func(int, *Manifest) {}), 100, ""},
		"many":     {many(1024, func(i int, m *Manifest) {}), 950, "messages are cut, "},
		"errors": {many(1024, func(i int, m *Manifest) {
			m.Applied, m.Seen = &Applied{Err: errors.New(long)}, &Seen{Err: errors.New(long)}
		}), 500, "of 1024 manifests are left out"},
		"values": {many(1024, func(i int, m *Manifest) {
			m.Seen.FeedbackRules, m.Seen.Feedback = true, integer(strings.Repeat("v", 200+i%2), int64(i))
		}), 950, "messages are cut, the feedback of 1024 manifests is left out"},
		"values, and errors": {many(1024, func(i int, m *Manifest) {
			m.Seen.FeedbackRules, m.Seen.Feedback, m.Seen.FeedbackErr = true, integer(strings.Repeat("v", 200), int64(i)), errors.New("no")
		}), 600, "messages are cut, the feedback of 1024 manifests is left out"},
		"long values": {many(30, func(i int, m *Manifest) {
			text := long[:60_000]
			m.Seen.FeedbackRules = true
			m.Seen.Feedback = []workv1.FeedbackValue{{Name: "a", Value: workv1.FieldValue{Type: workv1.String, String: &text}}}
		}), 30, "messages are cut, the feedback of"},
		"long names, one fails": {many(1024, func(i int, m *Manifest) {
			m.Meta.Name, m.Meta.Namespace = strings.Repeat("n", 240)+fmt.Sprint(i), strings.Repeat("n", 240)
			if i == 1000 {
				m.Applied = &Applied{Err: errors.New("no")}
			}
		}), 400, "of 1024 manifests are left out"},
		"many conditions": {many(40, func(i int, m *Manifest) { m.Seen.Conditions = rulesOf(i) }), 15, "of 40 manifests are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t).round(1, test.manifests...)
			text, err := json.Marshal(w.status)
			if err != nil || len(text) > MaxSize || bounds.Heavier(w.status, 512_000) {
				t.Errorf("the status has %d bytes, %v", len(text), err)
			}
			kept := w.status.ResourceStatus.Manifests
			if len(kept) < test.kept {
				t.Errorf("only %d of %d manifests are left", len(kept), len(test.manifests))
			}
			c := meta.FindStatusCondition(w.status.Conditions, conditionStatusTruncated)
			if (c != nil) != (test.told != "") || (c != nil && !strings.Contains(c.Message, test.told)) {
				t.Errorf("told: %s, want %q", describe(c), test.told)
			}
			all := append([]workv1.ManifestCondition{{Conditions: w.status.Conditions}}, kept...)
			for i := range all {
				if errs := metav1validation.ValidateConditions(all[i].Conditions, field.NewPath("conditions")); len(errs) > 0 || len(all[i].Conditions) > 128 {
					t.Fatalf("%d conditions: %v", len(all[i].Conditions), errs)
				}
			}
			if name == "long names, one fails" {
				failed := metaOf(1000, "")
				failed.Name, failed.Namespace = strings.Repeat("n", 240)+"1000", strings.Repeat("n", 240)
				if Find(w.status, &failed) == nil {
					t.Error("the one that fails was left out")
				}
			}
			if name == "many conditions" {
				for _, condition := range []string{"Complete", "Progressing", "Applied", "Available"} {
					if meta.FindStatusCondition(w.status.Conditions, condition) == nil {
						t.Errorf("%s was left out", condition)
					}
				}
			}
			// With enough room again, nothing is reported.
			w.round(1, many(1, func(int, *Manifest) {})...).is(conditionStatusTruncated, "none")
		})
	}
}
