// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pendingclusters limits the number of clusters that wait to be accepted, since every holder of a bootstrap token can create them.
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
	// DefaultMost is the default for the largest number of pending clusters.
	DefaultMost = 1000
	// inFlight is the time for which an admitted cluster counts that is not in the cache: it is being written, or was rejected after admission.
	inFlight = 10 * time.Second
	// recount is the time for which a count is valid. Admitted clusters are added to it, so that a flood of creates does not list the clusters for each.
	recount = time.Second
)

// Clusters reads the clusters of the hub.
type Clusters interface {
	rest.Lister
	rest.Getter
}

// Plugin rejects a new cluster when too many are pending, unless the user may accept it. A cluster does not have the user who created it, so the
// clusters of all users count.
type Plugin struct {
	permission.Guard
	// Clusters reads the clusters of the hub. If it is nil, no cluster is admitted.
	Clusters Clusters
	// Most is the largest number of pending clusters. 0 means no limit.
	Most  int
	clock clock.PassiveClock

	// lock serializes creates, so that each counts those before it, which the cache may not have yet. What other replicas have admitted since the
	// last count is not counted.
	lock     sync.Mutex
	counted  time.Time
	pending  int
	admitted map[string]time.Time
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer and the clusters.
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
		return nil // storage rejects it; it takes no room, accepted or not
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
	// Permission: a ManagedCluster is created while the maximum number of clusters is waiting for acceptance.
	excused, err := p.Excused(ctx, a, permission.Accept(a)...)
	if excused {
		return nil
	}
	return admission.NewForbidden(a, errors.Join(fmt.Errorf("%d clusters wait to be accepted, and no more are allowed "+
		"(--max-pending-clusters of hub-apiserver): ask an admin of the hub to accept or delete some; kubectl get managedclusters lists them", p.Most), err))
}

// exists reports whether the cache has a cluster of that name. It has none for an empty name, which is generated after admission.
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

// admit reports whether there is room for a cluster, and reserves it.
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

// unaccepted returns the names of the cached clusters that are not accepted, and the number of those that are pending. Its cost depends on their
// number, and not on the size of the fleet.
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
		// Clusters that were accepted once and are denied are not pending.
		if meta.FindStatusCondition(list.Items[i].Status.Conditions, registration.ConditionHubAccepted) == nil {
			pending++
		}
	}
	return names, pending, nil
}
