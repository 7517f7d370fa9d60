// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// Who says by which rules who may do something with a cluster.
type Who struct {
	// Verb is one of diagnosis.AccessVerbs.
	Verb string `json:"verb"`
	// By is what the way takes, in words.
	By string `json:"by"`
	// Holders are the subjects that have all that the way takes, the people first.
	Holders []string `json:"holders"`
	// Unseen says why that could not be seen.
	Unseen string `json:"unseen,omitempty"`
}

// WhoMay says who may do what with a cluster, as far as the user may read the rules of RBAC. What other authorizers allow is not in it.
func (h *Hub) WhoMay(ctx context.Context, cluster string) ([]Who, error) {
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

// holdersOf are those who meet all needs of a way.
func holdersOf(rules *diagnosis.Rules, verb string, way diagnosis.AccessWay) Who {
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
			if count[who]++; count[who] == 1 {
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
