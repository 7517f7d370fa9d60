// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaceplacements limits the number of placements in a namespace. Each is scheduled when a cluster of its sets changes, and the hub
// writes decisions for each, so an admin of a namespace could slow down the hub for all others.
package namespaceplacements

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "NamespacePlacements"
	// DefaultMost is the default for the largest number of placements in a namespace.
	DefaultMost = 1000
	// inFlight is the time for which an admitted placement counts that is not in the cache: it is being written, or was rejected after admission.
	inFlight = 10 * time.Second
)

// Plugin rejects a new placement in a namespace that has reached its limit.
type Plugin struct {
	*admission.Handler
	// Placements lists the placements of the hub. If it is nil, no placement is admitted.
	Placements rest.Lister
	// Most is the largest number in a namespace. 0 means no limit.
	Most  int
	clock clock.PassiveClock

	// lock serializes creates, so that each counts those before it, which the cache may not have yet. What other replicas admit concurrently is not
	// counted.
	lock sync.Mutex
	// admitted are the placements that the cache may not have yet, by namespace and name, and when each was admitted.
	admitted map[string]map[string]time.Time
	// unnamed numbers those without a name.
	unnamed int
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs the placements.
func New(c clock.PassiveClock) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create), clock: c, Most: DefaultMost, admitted: map[string]map[string]time.Time{}}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	placement, _, err := permission.Objects[cluster.Placement](a, cluster.Resource("placements"))
	if placement == nil || p.Most == 0 || a.GetSubresource() != "" {
		return err
	}
	free, err := p.admit(ctx, a.GetNamespace(), placement.Name, a.IsDryRun())
	switch {
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", PluginName, err))
	case free:
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("the namespace has %d placements, and no more are allowed "+
		"(--max-placements-per-namespace of hub-apiserver): delete some, or use another namespace", p.Most))
}

// admit reports whether there is room for a placement, and reserves it.
func (p *Plugin) admit(ctx context.Context, namespace, name string, dryRun bool) (bool, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	seen, err := p.names(ctx, namespace)
	if err != nil {
		return false, err
	}
	now := p.clock.Now()
	for other, names := range p.admitted {
		for admitted, at := range names {
			if now.Sub(at) > inFlight || other == namespace && seen[admitted] {
				delete(names, admitted)
			}
		}
		if len(names) == 0 {
			delete(p.admitted, other)
		}
	}
	coming := p.admitted[namespace]
	if _, again := coming[name]; again || seen[name] {
		return true, nil // storage rejects it if it exists already
	}
	if len(seen)+len(coming) >= p.Most {
		return false, nil
	}
	if dryRun {
		return true, nil
	}
	if name == "" {
		p.unnamed++
		name = fmt.Sprint("/", p.unnamed) // no name has a slash
	}
	if coming == nil {
		coming = map[string]time.Time{}
		p.admitted[namespace] = coming
	}
	coming[name] = now
	return true, nil
}

// names returns the names of the cached placements in a namespace.
func (p *Plugin) names(ctx context.Context, namespace string) (map[string]bool, error) {
	if p.Placements == nil {
		return nil, errors.New("the server is still starting: try again in a few seconds")
	}
	found, err := p.Placements.List(request.WithNamespace(ctx, namespace), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	list, ok := found.(*cluster.PlacementList)
	if !ok {
		return nil, fmt.Errorf("the placements are a %T", found)
	}
	names := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	return names, nil
}
