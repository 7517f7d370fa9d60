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

// Read is what came of looking at something: it is there, or it is not, or the user may not see it. The zero value was not looked at.
type Read[T any] struct {
	value          T
	found, missing bool
	hidden         string
}

// Found is something that is there.
func Found[T any](value T) Read[T] { return Read[T]{value: value, found: true} }

// Missing is something that is not there, as far as the server says so.
func Missing[T any]() Read[T] { return Read[T]{missing: true} }

// Hidden is something that could not be seen, and why, such as "you may not get leases in the namespace c1".
func Hidden[T any](why string) Read[T] { return Read[T]{hidden: why} }

// Get returns what is there.
func (r Read[T]) Get() (value T, found bool) { return r.value, r.found }

// IsMissing says that the server has looked and found nothing.
func (r Read[T]) IsMissing() bool { return r.missing }

// Why says why it could not be seen, empty if it could.
func (r Read[T]) Why() string {
	if r.found || r.missing || r.hidden != "" {
		return r.hidden
	}
	return "it was not looked at"
}

// link is one link of a chain. Its check is called only when no link before it is broken.
type link struct {
	name  string
	check func() outcome
}

// outcome is what a check has found.
type outcome struct {
	state   State
	text    string
	finding *Finding
	// also are further things that could not be seen, and that would have been looked at.
	also []string
}

func passed(format string, args ...any) outcome {
	return outcome{state: Passed, text: fmt.Sprintf(format, args...)}
}

func unseen(why string) outcome { return outcome{state: Unseen, text: why} }

func broken(text string, f Finding) outcome { return outcome{state: Broken, text: text, finding: &f} }

// without adds what could not be seen and is not needed to say what was found.
func (o outcome) without(why ...string) outcome {
	o.also = append(o.also, slices.DeleteFunc(why, func(w string) bool { return w == "" })...)
	return o
}

// follow goes along the chain to the first link that is broken.
func follow(links []link) (a Answer) {
	for _, l := range links {
		if a.Finding != nil {
			a.Steps = append(a.Steps, Step{Name: l.name, State: NotReached})
			continue
		}
		o := l.check()
		a.Steps = append(a.Steps, Step{Name: l.name, State: o.state, Text: o.text})
		if a.Finding = o.finding; o.state == Unseen {
			a.notSeen(o.text)
		}
		a.notSeen(o.also...)
	}
	return a
}

// notSeen adds each thing once.
func (a *Answer) notSeen(why ...string) {
	for _, w := range why {
		if !slices.Contains(a.Unseen, w) {
			a.Unseen = append(a.Unseen, w)
		}
	}
}

// say sets the verdict: by the finding, if there is one, and else by whether all links were seen.
func (a Answer) say(well string) Answer {
	switch {
	case a.Finding != nil:
	case a.IsBlind():
		a.Verdict = "You may not see enough to say that all is well. Nothing that you may see is broken. To be shown was: " + well
	default:
		a.Verdict = well
	}
	return a
}

// IsBlind says that nothing that is broken was found, and that it could be where the user may not look.
func (a *Answer) IsBlind() bool {
	return a.Finding == nil && slices.ContainsFunc(a.Steps, func(s Step) bool { return s.State == Unseen })
}

// brokenStep is the name of the step that is broken, if one is.
func (a *Answer) brokenStep() string {
	for i := range a.Steps {
		if a.Steps[i].State == Broken {
			return a.Steps[i].Name
		}
	}
	return ""
}

// ago is how long ago something was.
func ago(now time.Time, at time.Time) string {
	if d := now.Sub(at); d >= time.Second {
		return duration.HumanDuration(d) + " ago"
	}
	return "just now"
}

// since is a time of an object, nil if it has none.
func since(at metav1.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// some is a list that may be long.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
