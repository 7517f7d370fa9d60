// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

// Facts of a cluster: a condition with its status, or the key of a taint.
const (
	factAccepted    = registration.ConditionHubAccepted + "=True"
	factJoined      = registration.ConditionJoined + "=True"
	factAvailable   = registration.ConditionAvailable + "=True"
	factClock       = registration.ConditionClockSynced + "=True"
	factSilent      = registration.ConditionAvailable + "=Unknown"
	factUnreachable = registration.TaintUnreachable
)

// fleetWatch watches the clusters of a hub, like any other client.
type fleetWatch struct {
	*observed.Facts
	prefix string
	// found is called for each new cluster.
	found func(name string)
}

// watchFleet watches the clusters with a prefix of their names, until the context ends.
func watchFleet(ctx context.Context, config *rest.Config, prefix string, found func(name string)) (*fleetWatch, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &fleetWatch{observed.NewFacts(), prefix, found}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.Cluster().V1().ManagedClusters().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.observe(obj.(*clusterv1.ManagedCluster)) },
		UpdateFunc: func(_, obj any) { f.observe(obj.(*clusterv1.ManagedCluster)) },
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, ctx.Err()
}

func (f *fleetWatch) observe(cluster *clusterv1.ManagedCluster) {
	if !strings.HasPrefix(cluster.Name, f.prefix) {
		return
	}
	facts := map[string]bool{}
	for _, c := range cluster.Status.Conditions {
		facts[c.Type+"="+string(c.Status)] = true
	}
	for _, t := range cluster.Spec.Taints {
		facts[t.Key] = true
	}
	if f.Observe(cluster.Name, facts) {
		f.found(cluster.Name)
	}
}
