// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Read is the result of reading something: it exists, it does not exist, or the user may not see it. The zero value was not read.
type Read[T any] struct {
	value          T
	found, missing bool
	hidden         string
}

// Found returns a Read of an existing value.
func Found[T any](value T) Read[T] { return Read[T]{value: value, found: true} }

// Missing returns a Read of something that does not exist, according to the server.
func Missing[T any]() Read[T] { return Read[T]{missing: true} }

// Hidden returns a Read of something that could not be read, and why, such as "you may not get leases in the namespace c1".
func Hidden[T any](why string) Read[T] { return Read[T]{hidden: why} }

// Get returns the value if it exists.
func (r Read[T]) Get() (value T, found bool) { return r.value, r.found }

// IsMissing reports whether the server returned that it does not exist.
func (r Read[T]) IsMissing() bool { return r.missing }

// Why returns why it could not be read, or "".
func (r Read[T]) Why() string {
	if r.found || r.missing || r.hidden != "" {
		return r.hidden
	}
	return "it was not checked"
}

// link is one link of a chain. Its check is called only if no link before it is broken.
type link struct {
	name  string
	check func() outcome
}

// outcome is the result of a check.
type outcome struct {
	state   StepState
	text    string
	finding *Finding
	// also lists other things that could not be read, and that would have been checked.
	also []string
}

func passed(format string, args ...any) outcome {
	return outcome{state: Passed, text: fmt.Sprintf(format, args...)}
}

func unseen(why string) outcome { return outcome{state: Unseen, text: why} }

func broken(text string, f Finding) outcome { return outcome{state: Broken, text: text, finding: &f} }

// without adds what could not be read, and is not needed for the result.
func (o outcome) without(why ...string) outcome {
	o.also = append(o.also, slices.DeleteFunc(why, func(w string) bool { return w == "" })...)
	return o
}

// follow runs the checks up to the first link that is broken.
func follow(links []link) (a Answer) {
	for _, l := range links {
		if a.Finding != nil {
			a.Steps = append(a.Steps, Step{Name: l.name, State: NotReached})
			continue
		}
		o := l.check()
		a.Steps = append(a.Steps, Step{Name: l.name, State: o.state, Text: o.text})
		a.Finding = o.finding
		if o.state == Unseen {
			a.addHidden(o.text)
		}
		a.addHidden(o.also...)
	}
	return a
}

// addHidden adds things without duplicates.
func (a *Answer) addHidden(why ...string) {
	for _, w := range why {
		if !slices.Contains(a.Unseen, w) {
			a.Unseen = append(a.Unseen, w)
		}
	}
}

// setVerdict sets the verdict: by the finding, if there is one, and otherwise by whether all links could be checked.
func (a Answer) setVerdict(well string) Answer {
	switch {
	case a.Finding != nil:
	case a.IsBlind():
		a.Verdict = "You may not see enough to say that all is well. Nothing that you may see is broken. To confirm: " + well
	default:
		a.Verdict = well
	}
	return a
}

// IsBlind reports whether nothing broken was found, but some steps could not be checked.
func (a *Answer) IsBlind() bool {
	return a.Finding == nil && slices.ContainsFunc(a.Steps, func(s Step) bool { return s.State == Unseen })
}

// brokenStep returns the name of the broken step, or "".
func (a *Answer) brokenStep() string {
	for i := range a.Steps {
		if a.Steps[i].State == Broken {
			return a.Steps[i].Name
		}
	}
	return ""
}

// ago returns how long ago a time was.
func ago(now time.Time, at time.Time) string {
	if d := now.Sub(at); d >= time.Second {
		return duration.HumanDuration(d) + " ago"
	}
	return "just now"
}

// since returns a time of an object, or nil if it is not set.
func since(at metav1.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// shortened returns a list that is cut if it is long.
func shortened(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
