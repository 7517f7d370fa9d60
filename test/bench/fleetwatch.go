// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Facts of a cluster: a condition with its status, or the key of a taint.
const (
	factExists      = "exists"
	factAccepted    = registration.ConditionHubAccepted + "=True"
	factJoined      = registration.ConditionJoined + "=True"
	factAvailable   = registration.ConditionAvailable + "=True"
	factClock       = registration.ConditionClockSynced + "=True"
	factSilent      = registration.ConditionAvailable + "=Unknown"
	factUnreachable = registration.TaintUnreachable
)

// fleetWatch sees all that becomes of the clusters of a hub, as any client that watches them does.
type fleetWatch struct {
	prefix string
	// found is called with each cluster that is new.
	found func(name string)

	mu sync.Mutex
	// facts are since when what is so is so, by cluster.
	facts map[string]map[string]time.Time
	// lost are the conditions that have been True, and then were not.
	lost []string
}

// watchFleet watches the clusters whose names begin so, until the context ends.
func watchFleet(ctx context.Context, config *rest.Config, prefix string, found func(name string)) (*fleetWatch, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &fleetWatch{prefix: prefix, found: found, facts: map[string]map[string]time.Time{}}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.Cluster().V1().ManagedClusters().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.see(obj.(*clusterv1.ManagedCluster)) },
		UpdateFunc: func(_, obj any) { f.see(obj.(*clusterv1.ManagedCluster)) },
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, ctx.Err()
}

func (f *fleetWatch) see(cluster *clusterv1.ManagedCluster) {
	if !strings.HasPrefix(cluster.Name, f.prefix) {
		return
	}
	now := time.Now()
	facts := map[string]bool{factExists: true}
	for _, c := range cluster.Status.Conditions {
		facts[c.Type+"="+string(c.Status)] = true
	}
	for _, t := range cluster.Spec.Taints {
		facts[t.Key] = true
	}
	f.mu.Lock()
	before, known := f.facts[cluster.Name]
	if !known {
		before = map[string]time.Time{}
		f.facts[cluster.Name] = before
	}
	maps.DeleteFunc(before, func(fact string, _ time.Time) bool {
		if !facts[fact] && strings.HasSuffix(fact, "=True") {
			f.lost = append(f.lost, cluster.Name+": "+fact)
		}
		return !facts[fact]
	})
	for fact := range facts {
		if _, ok := before[fact]; !ok {
			before[fact] = now
		}
	}
	f.mu.Unlock()
	if !known {
		f.found(cluster.Name)
	}
}

// count returns how many clusters have all the facts.
func (f *fleetWatch) count(facts ...string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if !slices.ContainsFunc(facts, func(fact string) bool { return of[fact].IsZero() }) {
			n++
		}
	}
	return n
}

// await waits until n clusters have all the facts. Nothing of that is to take longer than a stall without any progress.
func (f *fleetWatch) await(ctx context.Context, steps *progress, n int, facts ...string) error {
	const stall = 3 * time.Minute
	best, since := -1, time.Now()
	for {
		have := f.count(facts...)
		if have == n {
			return nil
		}
		if have > best {
			best, since = have, time.Now()
		}
		if time.Since(since) > stall {
			return fmt.Errorf("%d of %d clusters have %v, and none more since %s", have, n, facts, stall)
		}
		steps.at(have, n)
		if err := sleep(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// since returns how long after one fact another became true, for each cluster.
func (f *fleetWatch) since(from, to string) (took samples) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if a, b := of[from], of[to]; !a.IsZero() && !b.IsZero() {
			took = append(took, b.Sub(a))
		}
	}
	return took
}

// times returns when a fact became true, in order.
func (f *fleetWatch) times(fact string) (times []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if at := of[fact]; !at.IsZero() {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// losses returns the conditions that were lost, and forgets them.
func (f *fleetWatch) losses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := f.lost
	f.lost = nil
	return lost
}
