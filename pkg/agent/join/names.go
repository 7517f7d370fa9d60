// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
)

// Start loads the state and determines the names of cluster and agent. It waits for the agent's clusters to respond.
func (j *Joiner) Start(ctx context.Context) (state.State, error) {
	retry := repeat.Backoff{Shortest: time.Second, Longest: maxPause, Random: j.Random}
	said := &repeat.Said{}
	for {
		j.Health.Waiting("the agent's own cluster")
		s, err := j.names(ctx)
		var wrong *settingsError
		if err == nil || errors.As(err, &wrong) {
			return s, err
		}
		said.Result(ctx, "reading the agent's state", err)
		if !repeat.Sleep(ctx, retry.Next()) {
			return state.State{}, ctx.Err()
		}
	}
}

// settingsError reports a mistake that a retry does not fix.
type settingsError struct{ message string }

func (e *settingsError) Error() string { return e.message }

func (j *Joiner) names(ctx context.Context) (state.State, error) {
	s, err := j.Store.Load(ctx)
	if err != nil {
		return state.State{}, err
	}
	name := j.Cluster.Name
	if s.ClusterName != "" && name != "" && s.ClusterName != name {
		return state.State{}, &settingsError{fmt.Sprintf("--cluster-name is %s, but this cluster is registered as %s: run hub-agent "+
			"unjoin first, or leave the flag out", name, s.ClusterName)}
	}
	if name == "" {
		name = s.ClusterName
	}
	if name == "" {
		id, err := j.Spoke.ID(ctx)
		if err != nil {
			return state.State{}, err
		}
		name = id
	}
	if s.ClusterName != "" && s.AgentName != "" {
		return s, nil
	}
	return j.Store.Update(ctx, func(s *state.State) {
		s.ClusterName = name
		if s.AgentName == "" {
			s.AgentName = rand.String(10)
		}
	})
}
