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

// checkInterval is the interval between two checks of kubeconfigs, less a quarter at most. The files are small and local.
const checkInterval = 10 * time.Second

// process runs the part of the agent that the flags select, with the current kubeconfigs. When the configuration of a cluster changes in one, the
// part ends and is started again. It loses nothing by that: its state is not in the process.
type process struct {
	*Options
	health *health.Health
	// view outlives parts as it outlives sessions: a change of a kubeconfig is no restart by an admin.
	view *hub.View
	// metrics are served as long as the process runs.
	metrics *metrics.Server
}

// clusters are the agent's clusters, as configured by the kubeconfigs at one time.
type clusters struct {
	own *spoke.Cluster
	// home is nil for a process that does not need it.
	home *management.Cluster
	// sums are the hashes of the kubeconfigs, and hubs those of the bootstrap kubeconfigs of several hubs, by name.
	sums sums
	hubs map[string]string
}

type sums struct{ managed, management, bootstrap string }

// run returns when the context ends, or with an error that only an admin can fix.
func (p *process) run(ctx context.Context) error {
	now := p.next(ctx, nil)
	for now != nil {
		part, err := p.assemble(now)
		if err != nil {
			return err
		}
		now, err = p.until(ctx, part, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// until runs a part until the context ends, or the configuration of the clusters changes, which it then returns.
func (p *process) until(ctx context.Context, part part, now *clusters) (next *clusters, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var following sync.WaitGroup
	following.Go(func() {
		next = p.next(ctx, now)
		if next != nil {
			klog.FromContext(ctx).Info("A kubeconfig has changed: restarting with it")
		}
		end()
	})
	err = part.run(ctx)
	end()
	following.Wait()
	return next, err
}

// next waits until the configuration of the clusters differs from now, and returns the new one. It returns nil if the context ends before.
func (p *process) next(ctx context.Context, now *clusters) *clusters {
	said := &repeat.Said{}
	for {
		if now != nil && !repeat.Sleep(ctx, repeat.Jittered(checkInterval, rand.Float64)) {
			return nil
		}
		found, err := p.reload(now)
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

// reload reads the kubeconfigs. It returns nil if they are unchanged. A kubeconfig that cannot be read or used counts as unchanged.
func (p *process) reload(before *clusters) (*clusters, error) {
	var now sums
	managed, err := p.Spoke.Managed()
	if err != nil {
		return nil, fmt.Errorf("connecting to the managed cluster, --spoke-kubeconfig: %w", err)
	}
	now.managed = managed.Sum
	var home files.Kubeconfig
	if p.needsManagement() {
		home, err = p.Spoke.Management()
		if err != nil {
			return nil, fmt.Errorf("connecting to the management cluster, --management-kubeconfig: %w", err)
		}
		now.management = home.Sum
	}
	// An agent with an identity needs no bootstrap kubeconfig, and one without waits for it itself.
	var broken error
	if p.BootstrapKubeconfig != "" {
		now.bootstrap, broken = files.HubSum(p.BootstrapKubeconfig)
		if broken != nil && before != nil {
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
	next.own, err = p.Spoke.NewCluster(managed.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the managed cluster, --spoke-kubeconfig: %w", err)
	}
	if p.needsManagement() {
		next.home, err = spoke.NewManagement(home.Config, p.Spoke.Namespace)
		if err != nil {
			return nil, fmt.Errorf("connecting to the management cluster, --management-kubeconfig: %w", err)
		}
	}
	if p.Metrics.AuthenticatesClients() {
		if err := p.metrics.Use(home.Config); err != nil {
			return nil, fmt.Errorf("authenticating the users of the metrics: %w", err)
		}
	}
	return next, nil
}
