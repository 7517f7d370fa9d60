// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"maps"
)

// Other is an identity on another hub than the one in use. It is kept because that hub knows the agent by its key: an agent that comes back
// with another one needs an admin.
type Other struct {
	Kubeconfig    []byte `json:"kubeconfig,omitempty"`
	Cert          []byte `json:"cert,omitempty"`
	Key           []byte `json:"key,omitempty"`
	NextKey       []byte `json:"nextKey,omitempty"`
	NextCSR       string `json:"nextCSR,omitempty"`
	RegisteredKey string `json:"registeredKey,omitempty"`
}

// SwitchTo puts the identity in use aside, and continues with the one that is remembered of another hub, if there is one. The names of the
// cluster and of the agent are the same on all hubs.
func (s *State) SwitchTo(hub string) {
	others := maps.Clone(s.Others)
	if others == nil {
		others = map[string]Other{}
	}
	if s.Hub != "" && (len(s.Key) > 0 || len(s.NextKey) > 0) {
		others[s.Hub] = Other{s.Kubeconfig, s.Cert, s.Key, s.NextKey, s.NextCSR, s.RegisteredKey}
	}
	next := others[hub]
	delete(others, hub)
	s.Kubeconfig, s.Cert, s.Key = next.Kubeconfig, next.Cert, next.Key
	s.NextKey, s.NextCSR, s.RegisteredKey = next.NextKey, next.NextCSR, next.RegisteredKey
	s.Hub, s.Others, s.Refusal = hub, others, ""
}

func formatOthers(others map[string]Other) []byte {
	if len(others) == 0 {
		return nil
	}
	data, err := json.Marshal(others)
	if err != nil {
		return nil // texts can always be written
	}
	return data
}

// parseOthers reads what formatOthers has written. What cannot be read is nothing: then the other hubs are joined with new keys.
func parseOthers(data []byte) (others map[string]Other) {
	if json.Unmarshal(data, &others) != nil {
		return nil
	}
	return others
}
