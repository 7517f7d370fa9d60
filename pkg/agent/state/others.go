// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"maps"
)

// Other is an identity on a hub that is not in use. It is stored because that hub knows the agent by its key: an agent that comes back with a
// different key needs an admin.
type Other struct {
	Kubeconfig    []byte `json:"kubeconfig,omitempty"`
	Cert          []byte `json:"cert,omitempty"`
	Key           []byte `json:"key,omitempty"`
	NextKey       []byte `json:"nextKey,omitempty"`
	NextCSR       string `json:"nextCSR,omitempty"`
	RegisteredKey string `json:"registeredKey,omitempty"`
}

// SwitchTo stores the identity in use, and continues with the stored one of the given hub, if it exists. The names of the cluster and of the agent
// are the same on all hubs.
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
		return nil // strings can always be marshaled
	}
	return data
}

// parseOthers parses the result of formatOthers. It returns nil if that is invalid: then the other hubs are joined with new keys.
func parseOthers(data []byte) (others map[string]Other) {
	if json.Unmarshal(data, &others) != nil {
		return nil
	}
	return others
}
