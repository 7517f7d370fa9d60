// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// forged stands in for a time that a client made up, until validation refuses it. Between the two the present is
// filled in for the times that clients left out, and a made-up present would look the same.
var forged = metav1.Unix(-1<<40, 0)

// PrepareNewTaints sets when the taints of a new cluster were added: now. What the client says does not count.
func PrepareNewTaints(taints []cluster.Taint, now metav1.Time) {
	for i := range taints {
		taints[i].TimeAdded = toWire(now)
	}
}

// PrepareTaints sets when each taint of a changed cluster was added, where the client left it out: as before for those
// that are unchanged, now for the others. A taint whose value or effect changes counts as new, as in upstream's
// webhook. Then the time of before is no time that the client gave: server-side apply and a strategic merge patch leave it
// there. ValidateManagedClusterUpdate refuses the other times.
func PrepareTaints(taints, old []cluster.Taint, now metav1.Time) {
	for i := range taints {
		t := &taints[i]
		before := findTaint(old, t)
		switch {
		case before != nil && (t.TimeAdded.IsZero() || t.TimeAdded.Unix() == before.TimeAdded.Unix()):
			t.TimeAdded = before.TimeAdded
		case before == nil && (t.TimeAdded.IsZero() || isTimeOfKey(old, t)):
			t.TimeAdded = toWire(now)
		default:
			t.TimeAdded = forged
		}
	}
}

// isTimeOfKey reports whether the time of a taint equals that of an old taint with the same key.
func isTimeOfKey(old []cluster.Taint, t *cluster.Taint) bool {
	return slices.ContainsFunc(old, func(o cluster.Taint) bool { return o.Key == t.Key && o.TimeAdded.Unix() == t.TimeAdded.Unix() })
}

// validateTaintsOnce refuses duplicate taints, by key and effect. Duplicates that were stored before this rule may stay.
func validateTaintsOnce(taints, old []cluster.Taint, path *field.Path) field.ErrorList {
	type id struct {
		key    string
		effect cluster.TaintEffect
	}
	left := map[id]int{}
	for _, t := range old {
		left[id{t.Key, t.Effect}]++
	}
	var errs field.ErrorList
	seen := sets.New[id]()
	for i, t := range taints {
		of := id{t.Key, t.Effect}
		left[of]--
		if seen.Has(of) && left[of] < 0 {
			errs = append(errs, field.Duplicate(path.Index(i), t.Key+":"+string(t.Effect)))
		}
		seen.Insert(of)
	}
	return errs
}

// TaintWarnings returns a warning for each key with several taints: clients that send strategic merge patches cannot tell them apart.
func TaintWarnings(c *cluster.ManagedCluster) (warnings []string) {
	seen := map[string]int{}
	for _, t := range c.Spec.Taints {
		seen[t.Key]++
		if seen[t.Key] == 2 {
			warnings = append(warnings, fmt.Sprintf("spec.taints: several taints have the key %s. kubectl apply and kubectl edit take them for one: apply them with --server-side", t.Key))
		}
	}
	return warnings
}

// toWire makes a time as precise as the wire format.
func toWire(t metav1.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// validateTaintTimes refuses the times that PrepareTaints found to be made up.
func validateTaintTimes(taints []cluster.Taint, path *field.Path) field.ErrorList {
	var keys []string
	for i := range taints {
		if taints[i].TimeAdded.Equal(&forged) {
			keys = append(keys, taints[i].Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"It is not allowed to set TimeAdded of Taint %q. Leave timeAdded out: the server sets it.", strings.Join(keys, ",")))}
}

// findTaint returns the same taint. Taints of one key differ by their values and effects.
func findTaint(taints []cluster.Taint, t *cluster.Taint) *cluster.Taint {
	for i := range taints {
		if o := &taints[i]; o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect {
			return o
		}
	}
	return nil
}
