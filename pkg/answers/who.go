// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// Who is the query for the subjects that may do something with a cluster, and the rules that allow it.
type Who struct {
	// Verb is one of diagnosis.AccessVerbs.
	Verb string `json:"verb"`
	// By describes the necessary permissions.
	By string `json:"by"`
	// Holders are the subjects that have all of these permissions, users first.
	Holders []string `json:"holders"`
	// Unseen is the reason why they could not be read.
	Unseen string `json:"unseen,omitempty"`
}

// WhoMay returns the subjects that may do things with a cluster, as far as the user may read the rules of RBAC. It does not include what other
// authorizers allow.
func (h *HubView) WhoMay(ctx context.Context, cluster string) ([]Who, error) {
	target := diagnosis.Target{Cluster: cluster}
	sets, err := h.setsOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	target.SetsOf, _ = sets.Get()
	rules, err := h.rules(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var all []Who
	for _, verb := range diagnosis.AccessVerbs(target) {
		ways, err := diagnosis.Ways(verb, target)
		if err != nil {
			return nil, err
		}
		for _, way := range ways {
			all = append(all, holdersOf(&rules, verb, way))
		}
	}
	return all, nil
}

// holdersOf returns the subjects that meet all needs of a way.
func holdersOf(rules *diagnosis.RBACRules, verb string, way diagnosis.AccessWay) Who {
	w := Who{Verb: verb, Holders: []string{}}
	var names []string
	count := map[string]int{}
	var order []string
	for _, need := range way.Needs {
		names = append(names, need.Name)
		holders := rules.Holders(need.Any...)
		found, seen := holders.Get()
		if !seen {
			w.Unseen = holders.Why()
		}
		for _, who := range found {
			count[who]++
			if count[who] == 1 {
				order = append(order, who)
			}
		}
	}
	w.By = strings.Join(names, " and ")
	for _, who := range order {
		if count[who] == len(way.Needs) {
			w.Holders = append(w.Holders, who)
		}
	}
	return w
}
