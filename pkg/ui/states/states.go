// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package states has the states of objects as the page shows them: the words, and whether they are good. The rules are those of package inspect. It is
// pure: JSON of objects in, states out.
package states

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// Tone is how good a state is. What is not known is never good.
type Tone string

// The tones.
const (
	Good     Tone = "good"
	Bad      Tone = "bad"
	Wait     Tone = "wait"
	NotKnown Tone = "unknown"
)

// ToneOf returns the tone of a state.
func ToneOf(s inspect.HealthState) Tone {
	switch s {
	case inspect.Healthy:
		return Good
	case inspect.Unhealthy:
		return Bad
	case inspect.Progressing:
		return Wait
	}
	return NotKnown
}

// Cell is a state in words.
type Cell struct {
	Text string `json:"text"`
	Tone Tone   `json:"tone,omitempty"`
	// Since is when the state began, if the object has that time.
	Since *metav1.Time `json:"since,omitempty"`
	// More is a longer text, such as the message of a condition.
	More string `json:"more,omitempty"`
}

// States are the states of one object.
type States struct {
	// Cells are by the name that the page has for them, such as available.
	Cells map[string]Cell `json:"cells"`
	// Conditions are the tones of the conditions of the object, in their order. A condition that says nothing about health has none.
	Conditions []Tone `json:"conditions,omitempty"`
	// Manifests are the states of the objects of a work, in their order.
	Manifests []map[string]Cell `json:"manifests,omitempty"`
}

// Of returns the states of an object of a resource, such as managedclusters.cluster.open-cluster-management.io. It returns nil if the page shows none of
// such objects, or if the object cannot be read, which one of another version may not.
func Of(resource string, object []byte) *States {
	of := kinds[resource]
	if of == nil {
		return nil
	}
	states, err := of(object)
	if err != nil {
		return nil
	}
	return states
}

// Has reports whether the page shows states of objects of a resource.
func Has(resource string) bool { return kinds[resource] != nil }

// decoded returns a function that decodes an object.
func decoded[T any](of func(*T) *States) func([]byte) (*States, error) {
	return func(data []byte) (*States, error) {
		object := new(T)
		if err := json.Unmarshal(data, object); err != nil {
			return nil, err
		}
		return of(object), nil
	}
}

// words are the texts for the statuses of a condition of which True is good.
type words struct{ good, bad, unknown string }

// cell returns the cell of a condition, which is nil if it is not known.
func (w words) cell(c *metav1.Condition) Cell {
	if c == nil {
		return Cell{Text: w.unknown, Tone: NotKnown}
	}
	return w.shown(inspect.FromCondition(inspect.FromStatus(c.Status), c))
}

// status returns the cell of a status without a condition.
func (w words) status(s metav1.ConditionStatus) Cell {
	return w.shown(inspect.Health{State: inspect.FromStatus(s)})
}

func (w words) shown(h inspect.Health) Cell {
	cell := Cell{Text: w.unknown, Tone: ToneOf(h.State), Since: h.Since, More: h.Message}
	switch h.State {
	case inspect.Healthy:
		cell.Text, cell.More = w.good, ""
	case inspect.Unhealthy:
		cell.Text = w.bad
	}
	return cell
}

// tones returns the tones of conditions.
func tones(conditions []metav1.Condition) []Tone {
	all := make([]Tone, len(conditions))
	for i := range conditions {
		if h, known := inspect.Condition(&conditions[i]); known {
			all[i] = ToneOf(h.State)
		} else if inspect.FromStatus(conditions[i].Status) == inspect.Unknown {
			all[i] = NotKnown
		}
	}
	return all
}
