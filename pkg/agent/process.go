// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/files"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
)

// lookEvery is the time between two looks at kubeconfigs, less a quarter at most. They are small and local.
const lookEvery = 10 * time.Second

// process runs the part of the agent that the flags say, with kubeconfigs as they are. When one says that a cluster is to be reached in
// another way, the part ends and begins anew. It loses nothing by that: what it remembers is not in the process.
type process struct {
	*Options
	health *health.Health
	// view outlives parts as it outlives sessions: that a kubeconfig has changed is no restart by an admin.
	view *hub.View
	// metrics are served as long as the process runs.
	metrics *metrics.Server
}

// clusters are the agent's, as kubeconfigs say at one time how they are reached.
type clusters struct {
	own *spoke.Cluster
	// home is nil for a process that does not need it.
	home *management.Cluster
	// sums are those of the kubeconfigs, and hubs those of the bootstrap kubeconfigs of several hubs, by their names.
	sums sums
	hubs map[string]string
}

type sums struct{ managed, management, bootstrap string }

// run returns when the context ends, or with what only an admin can put right.
func (p *process) run(ctx context.Context) error {
	now := p.next(ctx, nil)
	for now != nil {
		part, err := p.assemble(now)
		if err != nil {
			return err
		}
		if now, err = p.until(ctx, part, now); err != nil {
			return err
		}
	}
	return nil
}

// until runs a part until the context ends, or the clusters are to be reached in another way: next is how.
func (p *process) until(ctx context.Context, part part, now *clusters) (next *clusters, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var following sync.WaitGroup
	following.Go(func() {
		if next = p.next(ctx, now); next != nil {
			klog.FromContext(ctx).Info("A kubeconfig has changed: beginning anew with it")
		}
		end()
	})
	err = part.run(ctx)
	end()
	following.Wait()
	return next, err
}

// next waits until the clusters are to be reached in another way than now. It returns nil if the context ends before.
func (p *process) next(ctx context.Context, now *clusters) *clusters {
	said := &repeat.Said{}
	for {
		if now != nil && !repeat.Sleep(ctx, repeat.Jittered(lookEvery, rand.Float64)) {
			return nil
		}
		found, err := p.look(now)
		said.Result(ctx, "reading kubeconfigs", err)
		if found != nil {
			return found
		}
		if now == nil {
			p.health.Waiting(err.Error())
			if !repeat.Sleep(ctx, time.Second) {
				return nil
			}
		}
	}
}

// look reads the kubeconfigs. It returns nil if they say what they said before. What cannot be read, or not be used, is as it was.
func (p *process) look(before *clusters) (*clusters, error) {
	var now sums
	managed, err := p.Spoke.Managed()
	if err != nil {
		return nil, fmt.Errorf("the way to the managed cluster, --spoke-kubeconfig: %w", err)
	}
	now.managed = managed.Sum
	var home files.Way
	if p.keeps() {
		if home, err = p.Spoke.Management(); err != nil {
			return nil, fmt.Errorf("the way to the management cluster, --management-kubeconfig: %w", err)
		}
		now.management = home.Sum
	}
	// An agent with an identity does without a bootstrap kubeconfig, and one without waits for it itself.
	var broken error
	if p.BootstrapKubeconfig != "" {
		if now.bootstrap, broken = files.HubSum(p.BootstrapKubeconfig); broken != nil && before != nil {
			now.bootstrap = before.sums.bootstrap
		}
	}
	several := map[string]string{}
	for _, c := range p.Hubs.Candidates() {
		sum, err := c.Sum()
		if err != nil && before != nil {
			sum = before.hubs[c.Name]
		}
		several[c.Name] = sum
		broken = errors.Join(broken, err)
	}
	if before != nil && before.sums == now && maps.Equal(before.hubs, several) {
		return nil, broken
	}
	next := &clusters{sums: now, hubs: several}
	if next.own, err = p.Spoke.NewCluster(managed.Config); err != nil {
		return nil, fmt.Errorf("the way to the managed cluster, --spoke-kubeconfig: %w", err)
	}
	if p.keeps() {
		if next.home, err = spoke.NewManagement(home.Config, p.Spoke.Namespace); err != nil {
			return nil, fmt.Errorf("the way to the management cluster, --management-kubeconfig: %w", err)
		}
	}
	if p.Metrics.Asks() {
		if err := p.metrics.Use(home.Config); err != nil {
			return nil, fmt.Errorf("who reads metrics: %w", err)
		}
	}
	return next, nil
}
