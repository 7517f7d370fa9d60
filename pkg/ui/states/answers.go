// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package states

import (
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// OfAnswer returns how good an answer is. One that is missing steps that the user may not see is not known to be good.
func OfAnswer(a *diagnosis.Answer) Tone {
	switch {
	case a.Finding != nil:
		return Bad
	case a.IsBlind():
		return NotKnown
	}
	return Good
}

// ComponentState is a program of the hub with its state.
type ComponentState struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   Cell   `json:"state"`
}

// HubStates has the states of the parts of a hub.
type HubStates struct {
	Components []ComponentState `json:"components"`
	EtcdBytes  int64            `json:"etcdBytes,omitempty"`
	Unseen     []string         `json:"unseen,omitempty"`
}

// OfHub returns the states of the parts of a hub.
func OfHub(s answers.ComponentStates) HubStates {
	h := HubStates{Components: []ComponentState{}, EtcdBytes: s.EtcdBytes, Unseen: s.Unseen}
	for i := range s.Components {
		c := &s.Components[i]
		h.Components = append(h.Components, ComponentState{c.Name, c.Version, Cell{Text: c.Message, Tone: ToneOf(c.State)}})
	}
	return h
}
