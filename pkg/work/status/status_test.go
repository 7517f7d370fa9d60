// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

var start = metav1.Unix(1_800_000_000, 0)

func after(minutes int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
}

var (
	missing = apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "cm")
	applied = &Applied{}
)

func metaOf(ordinal int, name string) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{Ordinal: int32(ordinal), Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: name}
}

func there(conditions ...metav1.Condition) *Seen { return &Seen{Conditions: conditions} }

// byRule returns a condition that a rule has set: Complete=True, and its message.
func byRule(text, message string) metav1.Condition {
	condition, status, _ := strings.Cut(text, "=")
	return metav1.Condition{Type: condition, Status: metav1.ConditionStatus(status), Reason: workv1.ConditionRuleEvaluated, Message: message}
}

// work is a work whose status is passed from round to round.
type work struct {
	t      *testing.T
	status *workv1.ManifestWorkStatus
	now    int
}

func newWork(t *testing.T) *work { return &work{t: t, status: &workv1.ManifestWorkStatus{}} }

// round is one minute after the previous one. Manifests without a Meta are ConfigMaps cm0, cm1 and so on.
func (w *work) round(generation int64, manifests ...Manifest) *work {
	w.t.Helper()
	for i := range manifests {
		if manifests[i].Meta == (workv1.ManifestResourceMeta{}) {
			manifests[i].Meta = metaOf(i, fmt.Sprint("cm", i))
		}
	}
	w.now++
	former := w.status.DeepCopy()
	r := Round{Generation: generation, Now: after(w.now), Manifests: manifests}
	next := Next(w.status, r)
	if !equality.Semantic.DeepEqual(former, w.status) {
		w.t.Errorf("the former status was changed")
	}
	// The same round later changes nothing.
	r.Now = after(w.now + 1000)
	if again := Next(next, r); !equality.Semantic.DeepEqual(again, next) {
		w.t.Errorf("the same round changes the status: %.2000s", cmp.Diff(next, again))
	}
	w.status = next
	return w
}

func describe(c *metav1.Condition) string {
	if c == nil {
		return "none"
	}
	minutes := int(c.LastTransitionTime.Sub(start.Time) / time.Minute)
	return fmt.Sprintf("%s %s: %s (generation %d, %d)", c.Status, c.Reason, c.Message, c.ObservedGeneration, minutes)
}

// is checks a condition of the work. Its time is the round of the last transition.
func (w *work) is(condition, want string) *work {
	w.t.Helper()
	if got := describe(meta.FindStatusCondition(w.status.Conditions, condition)); got != want {
		w.t.Errorf("%s\ngot  %s\nwant %s", condition, got, want)
	}
	return w
}

func (w *work) manifest(i int, condition, want string) *work {
	w.t.Helper()
	if got := describe(meta.FindStatusCondition(w.status.ResourceStatus.Manifests[i].Conditions, condition)); got != want {
		w.t.Errorf("manifest %d, %s\ngot  %s\nwant %s", i, condition, got, want)
	}
	return w
}

func TestNext_Applied(t *testing.T) {
	failed := &Applied{Err: errors.New("no")}
	w := newWork(t)
	// One was not tried yet.
	w.round(1, Manifest{Applied: applied}, Manifest{}).is("Applied", "none")
	w.round(1, Manifest{Applied: applied}, Manifest{Applied: applied}).
		is("Applied", "True AppliedManifestWorkComplete: Apply manifest work complete (generation 1, 2)").
		manifest(0, "Applied", "True AppliedManifestComplete: Apply manifest complete (generation 1, 1)").
		manifest(1, "Applied", "True AppliedManifestComplete: Apply manifest complete (generation 1, 2)")
	// A manifest has a new time at each generation, and the work when its status changes.
	w.round(2, Manifest{Applied: applied}, Manifest{}).
		manifest(0, "Applied", "True AppliedManifestComplete: Apply manifest complete (generation 2, 3)").
		manifest(1, "Applied", "True AppliedManifestComplete: Apply manifest complete (generation 1, 2)").
		is("Applied", "True AppliedManifestWorkComplete: Apply manifest work complete (generation 1, 2)")
	w.round(2, Manifest{Applied: applied}, Manifest{Applied: applied}).
		is("Applied", "True AppliedManifestWorkComplete: Apply manifest work complete (generation 2, 2)")
	w.round(2, Manifest{Applied: applied}, Manifest{Applied: failed}).
		is("Applied", "False AppliedManifestWorkFailed: Failed to apply manifest work (generation 2, 5)").
		manifest(0, "Applied", "True AppliedManifestComplete: Apply manifest complete (generation 2, 3)").
		manifest(1, "Applied", "False AppliedManifestFailed: Failed to apply manifest: no (generation 2, 5)")
	w.round(2, Manifest{Applied: &Applied{Err: fmt.Errorf("a jq expression: %w", ErrIgnoreFields)}}).
		manifest(0, "Applied", "False AppliedManifestSSAIgnoreFieldError: Failed to process ignoreFields: a jq expression: ignoreFields (generation 2, 6)")
}

func TestNext_Replaced(t *testing.T) {
	newWork(t).round(1, Manifest{Applied: &Applied{Replaced: errors.New("no schema")}}).
		manifest(0, "Applied", "True AppliedManifestComplete: Apply manifest complete: the object is replaced as a whole, also what others set in it, "+
			"since the server does not apply it: no schema (generation 1, 1)").
		is("Applied", "True AppliedManifestWorkComplete: Apply manifest work complete (generation 1, 1)")
}

// An agent that has restarted does not know whether it has created an object.
func TestNext_Adopted(t *testing.T) {
	const deleted = "True ObjectExisted: The object existed before it was applied. It is deleted with the work (generation 1, 1)"
	w := newWork(t)
	w.round(1, Manifest{Applied: &Applied{Adoption: Adopted}}).manifest(0, "Adopted", deleted)
	w.round(1, Manifest{Applied: applied}).manifest(0, "Adopted", deleted)
	w.round(1, Manifest{Applied: &Applied{Adoption: AdoptedToStay}}).
		manifest(0, "Adopted", "True ObjectExisted: The object existed before it was applied. It stays when the work is deleted (generation 1, 1)")
	w.round(1, Manifest{Applied: &Applied{Adoption: Created}}).manifest(0, "Adopted", "none")
}

func TestNext_Available(t *testing.T) {
	w := newWork(t)
	// W055
	w.round(1).is("Available", "Unknown ResourcesStatusUnknown: cannot get any available resource  (generation 1, 1)").is("Applied", "none")
	// W056
	w.round(1, Manifest{Seen: there()}, Manifest{Seen: &Seen{Err: missing}}).
		is("Available", "False ResourcesNotAvailable: 1 of 2 resources are not available (generation 1, 2)").
		manifest(0, "Available", "True ResourceAvailable: Resource is available (generation 0, 2)").
		manifest(1, "Available", "False ResourceNotAvailable: Resource is not available (generation 0, 2)")
	w.round(1, Manifest{Seen: there()}, Manifest{Seen: &Seen{Err: errors.New("no")}}).
		is("Available", "Unknown ResourcesStatusUnknown: 1 of 2 resources have unknown status (generation 1, 3)").
		manifest(1, "Available", "Unknown FetchingResourceFailed: Failed to fetch resource: no (generation 0, 3)")
	w.round(1, Manifest{Seen: there()}, Manifest{Seen: there()}).
		is("Available", "True ResourcesAvailable: All resources are available (generation 1, 4)")
	// W019: an object that cannot be applied at a new generation still exists.
	w.round(2, Manifest{Applied: &Applied{Err: errors.New("roleRef is immutable")}, Seen: there()}, Manifest{Applied: applied, Seen: there()}).
		is("Applied", "False AppliedManifestWorkFailed: Failed to apply manifest work (generation 2, 5)").
		is("Available", "True ResourcesAvailable: All resources are available (generation 2, 4)")
	// One has an unknown kind, and one could not be parsed.
	unknown := metaOf(0, "cm0")
	unknown.Resource = ""
	w.round(3, Manifest{Meta: unknown, Applied: applied, Seen: &Seen{Err: errors.New("not asked")}}, Manifest{Meta: workv1.ManifestResourceMeta{Ordinal: 1}, Seen: &Seen{}}).
		manifest(0, "Available", "Unknown IncompleteResourceMeta: Resource meta is incomplete (generation 0, 6)").
		manifest(1, "Available", "Unknown IncompleteResourceMeta: Resource meta is incomplete (generation 0, 6)").
		is("Available", "Unknown ResourcesStatusUnknown: 2 of 2 resources have unknown status (generation 3, 6)")
	// An object that was not read yet is not available.
	newWork(t).round(1, Manifest{Seen: there()}, Manifest{}).
		is("Available", "Unknown ResourcesStatusUnknown: 1 of 2 resources have unknown status (generation 1, 1)")
	// A rule may define Available.
	newWork(t).round(1, Manifest{Seen: there(byRule("Available=False", "0 replicas"))}, Manifest{Seen: there()}).
		manifest(0, "Available", "False ConditionRuleEvaluated: 0 replicas (generation 1, 1)").
		is("Available", "False ResourcesNotAvailable: 1 of 2 resources are not available (generation 1, 1)").
		round(2, Manifest{Seen: there()}, Manifest{Seen: there()}).
		manifest(0, "Available", "True ResourceAvailable: Resource is available (generation 0, 2)").
		is("Available", "True ResourcesAvailable: All resources are available (generation 2, 2)")
}

func integer(name string, n int64) []workv1.FeedbackValue {
	return []workv1.FeedbackValue{{Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &n}}}
}

func TestNext_Feedback(t *testing.T) {
	seen := func(n int64, err error) *Seen {
		return &Seen{FeedbackRules: true, Feedback: integer("a", n), FeedbackErr: err}
	}
	w := newWork(t)
	w.round(1, Manifest{Seen: there()}).manifest(0, FeedbackSynced, "True NoStatusFeedbackSynced:  (generation 0, 1)")
	w.round(1, Manifest{Seen: seen(1, nil)}).manifest(0, FeedbackSynced, "True StatusFeedbackSynced:  (generation 0, 2)")
	w.round(1, Manifest{Seen: seen(1, nil)}).manifest(0, FeedbackSynced, "True StatusFeedbackSynced:  (generation 0, 2)")
	// W046: new values get a new time.
	w.round(1, Manifest{Seen: seen(2, nil)}).manifest(0, FeedbackSynced, "True StatusFeedbackSynced:  (generation 0, 4)")
	w.round(1, Manifest{Seen: seen(2, errors.New("no path"))}).
		manifest(0, FeedbackSynced, "False StatusFeedbackSyncFailed: Sync status feedback failed with error no path (generation 0, 5)")
	if got := w.status.ResourceStatus.Manifests[0].StatusFeedbacks.Values; *got[0].Value.Integer != 2 {
		t.Errorf("got %+v", got)
	}
	// A manifest that cannot be read keeps its last feedback, also when it moves within the spec.
	w.round(2, Manifest{}, Manifest{Meta: metaOf(1, "cm1")}).round(2, Manifest{Meta: metaOf(0, "new")}, Manifest{Meta: metaOf(1, "cm0"), Seen: &Seen{Err: missing}})
	if got := w.status.ResourceStatus.Manifests[1]; len(got.StatusFeedbacks.Values) != 1 || got.ResourceMeta.Ordinal != 1 {
		t.Errorf("got %+v", got)
	}
	if got := w.status.ResourceStatus.Manifests[0]; len(got.StatusFeedbacks.Values)+len(got.Conditions) > 0 {
		t.Errorf("a new manifest has got %+v", got)
	}
}

func TestNext_Rules(t *testing.T) {
	for name, test := range map[string]struct {
		manifests [][]metav1.Condition
		condition string
		want      string
	}{
		"W052: one of two is false": {[][]metav1.Condition{{byRule("Complete=True", "a")}, {byRule("Complete=False", "b")}}, "Complete",
			"False ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"W053: progress": {[][]metav1.Condition{{byRule("Progressing=True", "a")}, {byRule("Progressing=False", "b")}}, "Progressing",
			"True ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"W054: one has a rule": {[][]metav1.Condition{{byRule("Complete=True", "it is done")}, nil}, "Complete",
			"True ConditionRulesAggregated: it is done (generation 1, 1)"},
		"unknown": {[][]metav1.Condition{{byRule("Own=True", "a")}, {byRule("Own=Unknown", "b")}}, "Own",
			"Unknown ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"false before unknown": {[][]metav1.Condition{{byRule("Own=Unknown", "a")}, {byRule("Own=False", "b")}}, "Own",
			"False ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"all": {[][]metav1.Condition{{byRule("Own=True", "a")}, {byRule("Own=True", "b")}}, "Own",
			"True ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"no progress": {[][]metav1.Condition{{byRule("Progressing=False", "a")}, {byRule("Progressing=False", "")}}, "Progressing",
			"False ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"unknown progress": {[][]metav1.Condition{{byRule("Progressing=False", "a")}, {byRule("Progressing=Unknown", "")}}, "Progressing",
			"Unknown ConditionRulesAggregated: Aggregated from 2 manifest conditions (generation 1, 1)"},
		"no message":             {[][]metav1.Condition{{byRule("Own=True", "")}}, "Own", "True ConditionRulesAggregated: Aggregated from 1 manifest conditions (generation 1, 1)"},
		"the agent's own":        {[][]metav1.Condition{{byRule("Applied=True", "a")}}, "Applied", "none"},
		"the agent's own, later": {[][]metav1.Condition{{byRule("Deleting=True", "a")}}, "Deleting", "none"},
		"no type":                {[][]metav1.Condition{{byRule("not a type=True", "a")}}, "not a type", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			var manifests []Manifest
			for _, conditions := range test.manifests {
				manifests = append(manifests, Manifest{Seen: there(conditions...)})
			}
			newWork(t).round(1, manifests...).is(test.condition, test.want)
		})
	}
}

// Conditions of removed rules are removed, and all others stay.
func TestNext_RulesOfOldGenerations(t *testing.T) {
	w := newWork(t)
	w.status.Conditions = []metav1.Condition{{Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: "WorkDeleting", LastTransitionTime: start}}
	w.round(1, Manifest{Seen: there(byRule("A=True", "a"), byRule("B=True", "b"))}).is("B", "True ConditionRulesAggregated: b (generation 1, 1)")
	// Not read at this generation: they stay.
	w.round(1, Manifest{}).round(1, Manifest{Seen: &Seen{Err: missing}}).is("B", "True ConditionRulesAggregated: b (generation 1, 1)")
	w.round(2, Manifest{Seen: there(byRule("A=True", "a"))}).
		is("A", "True ConditionRulesAggregated: a (generation 2, 1)").is("B", "none").manifest(0, "B", "none").
		is(workv1.WorkDeleting, "True WorkDeleting:  (generation 0, 0)")
	w.round(3, Manifest{Seen: &Seen{Err: missing}}).is("A", "none").manifest(0, "A", "none")
}

// A complete manifest is not applied until it is edited: a Job does not run twice.
func TestFrozen(t *testing.T) {
	rules := []workv1.ConditionRule{{Condition: "Other"}, {Condition: workv1.ManifestComplete}}
	w := newWork(t).round(1, Manifest{Applied: applied, Seen: there(byRule("Complete=True", "done"))}, Manifest{Applied: applied, Seen: there()})
	if !Done(w.status.Conditions, 1) || Done(w.status.Conditions, 2) {
		t.Errorf("done at 1: %v, at 2: %v", Done(w.status.Conditions, 1), Done(w.status.Conditions, 2))
	}
	one := metaOf(0, "cm0")
	found := Find(w.status, &one)
	if !Frozen(found.Conditions, rules, true) || Frozen(found.Conditions, rules, false) || Frozen(found.Conditions, rules[:1], true) || Frozen(nil, rules, true) {
		t.Error("it is frozen if it is unchanged and the rule is still there, and only then")
	}
	// Another manifest was edited, and the Job is gone: it is still complete.
	w.round(2, Manifest{Applied: applied, Seen: &Seen{Err: missing}, Frozen: true}, Manifest{Applied: applied, Seen: there()}).
		manifest(0, "Complete", "True ConditionRuleEvaluated: done (generation 2, 1)").
		is("Complete", "True ConditionRulesAggregated: done (generation 2, 1)")
	// This one was edited.
	w.round(3, Manifest{Applied: applied, Seen: &Seen{Err: missing}}, Manifest{Applied: applied, Seen: there()}).manifest(0, "Complete", "none").is("Complete", "none")
	// Conditions of others freeze nothing.
	forged := []metav1.Condition{{Type: workv1.ManifestComplete, Status: metav1.ConditionTrue, Reason: "Forged"}}
	if Frozen(forged, rules, true) || Done(forged, 0) {
		t.Error("a condition that no rule has made freezes")
	}
}

func TestFind(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Applied"}}
	s := &workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{
		{ResourceMeta: metaOf(0, "a"), Conditions: conditions}, {ResourceMeta: metaOf(1, "twice"), Conditions: conditions},
		{ResourceMeta: metaOf(2, "twice"), Conditions: conditions}, {ResourceMeta: workv1.ManifestResourceMeta{Ordinal: 3}, Conditions: conditions}}}}
	var got []bool
	for _, of := range []workv1.ManifestResourceMeta{metaOf(0, "a"), metaOf(5, "a"), metaOf(1, "twice"), metaOf(5, "twice"), {Ordinal: 3}, {Ordinal: 4}, {}} {
		got = append(got, Find(s, &of) != nil)
	}
	if want := []bool{true, true, true, false, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
