// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
)

// Event is an event about the placement, with the decision as its related object.
type Event struct {
	// Warning reports whether the type of the event is Warning; otherwise it is Normal.
	Warning         bool
	Reason, Message string
}

// addEvents adds events to the steps. Labels are not worth an event.
func addEvents(r *evaluation, steps []Step) {
	last := -1
	for i := range steps {
		var done, reason string
		switch steps[i].Action {
		case Create:
			done, reason = "created", "DecisionCreate"
		case Update:
			done, reason, last = "updated", "DecisionUpdate", i
		case Delete:
			done, reason = "deleted", "DecisionDelete"
		default:
			continue
		}
		e := Event{Reason: reason, Message: fmt.Sprintf("Decision %s is %s with placement %s in namespace %s",
			steps[i].Name, done, r.state.Placement.Name, r.state.Placement.Namespace)}
		if steps[i].Action != Delete && r.problem == nil && r.failure == nil {
			// The events have the scores, even if these have no effect.
			r.scores()
			if r.warning != nil {
				e.Warning = true
				e.Message = cut(fmt.Sprintf("%s: %s in plugin %s", e.Message, r.warning.message, r.warning.plugin))
			}
		}
		steps[i].Events = []Event{e}
	}
	if last >= 0 && r.totals != nil {
		steps[last].Events = append(steps[last].Events, Event{Reason: "ScoreUpdate", Message: scoreText(r)})
	}
}

// scoreText returns the scores of the clusters by name, as many as fit.
func scoreText(r *evaluation) string {
	const most = 1000
	var text strings.Builder
	for i, c := range r.passed {
		if text.Len() > most {
			break
		}
		fmt.Fprintf(&text, "%s:%d ", c.Name(), r.totals[i])
	}
	return cut(text.String())
}
