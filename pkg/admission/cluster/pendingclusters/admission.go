// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pendingclusters bounds how many clusters wait to be accepted, since every holder of a bootstrap token can make
// them.
package pendingclusters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "PendingClusters"
	// DefaultMost is how many clusters may be pending when no flag says otherwise.
	DefaultMost = 1000
	// inFlight is how long a cluster counts that was admitted and that the cache does not have: it is being written, or
	// something after admission has refused it.
	inFlight = 10 * time.Second
	// recount is how long a count is good for. Between counts what is admitted is added, so that a flood of creates does not
	// list the clusters for each.
	recount = time.Second
)

// Clusters are the clusters of the hub.
type Clusters interface {
	rest.Lister
	rest.Getter
}

// Plugin refuses a new cluster when too many are pending, to users who may not accept it. A cluster does not say who made
// it, so the clusters of all users count.
type Plugin struct {
	permission.Guard
	// Clusters are those of the hub. Without them, no cluster is made.
	Clusters Clusters
	// Most is how many may be pending. 0 means no bound.
	Most  int
	clock clock.PassiveClock

	// lock lets creates count one after the other, each with those before it, which the cache may not have yet. What other
	// replicas let in since the last count is missing.
	lock     sync.Mutex
	counted  time.Time
	pending  int
	admitted map[string]time.Time
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, to be given an authorizer and the clusters.
func New(c clock.PassiveClock) *Plugin {
	return &Plugin{
		Guard: permission.NewGuard(PluginName, admission.Create), clock: c, Most: DefaultMost, admitted: map[string]time.Time{},
	}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	c, _, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if c == nil || p.Most == 0 || c.Spec.HubAcceptsClient {
		return err
	}
	if exists, err := p.exists(ctx, c.Name); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
	} else if exists {
		return nil // Storage refuses it. It takes no room, accepted or not.
	}
	free, err := p.admit(ctx, c.Name, a.IsDryRun())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
	}
	if free {
		return nil
	}
	// Users who may accept the cluster need not wait.
	//
	// Permission: a ManagedCluster is made while as many wait to be accepted as may.
	excused, err := p.Excused(ctx, a, permission.Accept(a)...)
	if excused {
		return nil
	}
	return admission.NewForbidden(a, errors.Join(fmt.Errorf("%d clusters wait to be accepted, and no more are allowed "+
		"(--max-pending-clusters of hub-apiserver): ask an admin of the hub to accept or delete some; kubectl get managedclusters lists them", p.Most), err))
}

// exists says whether the cache has a cluster of that name. It cannot have one without a name, which gets it after admission.
func (p *Plugin) exists(ctx context.Context, name string) (bool, error) {
	if p.Clusters == nil {
		return false, errors.New("the server is still starting: try again in a few seconds")
	}
	if name == "" {
		return false, nil
	}
	_, err := p.Clusters.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// admit says whether there is room for a cluster, and takes it.
func (p *Plugin) admit(ctx context.Context, name string, dryRun bool) (bool, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := p.clock.Now()
	if now.Sub(p.counted) >= recount {
		seen, pending, err := p.unaccepted(ctx)
		if err != nil {
			return false, err
		}
		p.counted, p.pending = now, pending
		for other, at := range p.admitted {
			if seen[other] || now.Sub(at) > inFlight {
				delete(p.admitted, other)
			}
		}
	}
	if _, again := p.admitted[name]; again {
		return true, nil
	}
	if p.pending+len(p.admitted) >= p.Most {
		return false, nil
	}
	if !dryRun {
		p.admitted[name] = now
	}
	return true, nil
}

// unaccepted are the names of the clusters that the cache has and the hub does not accept, and the number of those whose
// acceptance is still to be decided. It costs what they are, not what the fleet is.
func (p *Plugin) unaccepted(ctx context.Context) (names map[string]bool, pending int, err error) {
	found, err := p.Clusters.List(ctx, &internalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.hubAcceptsClient", "false"), ResourceVersion: "0",
	})
	if err != nil {
		return nil, 0, err
	}
	list, ok := found.(*cluster.ManagedClusterList)
	if !ok {
		return nil, 0, fmt.Errorf("the clusters are a %T", found)
	}
	names = make(map[string]bool, len(list.Items))
	for i := range list.Items {
		names[list.Items[i].Name] = true
		// Those that were accepted once, and are denied, have been decided on.
		if meta.FindStatusCondition(list.Items[i].Status.Conditions, registration.ConditionHubAccepted) == nil {
			pending++
		}
	}
	return names, pending, nil
}
