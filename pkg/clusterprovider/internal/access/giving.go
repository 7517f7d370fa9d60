// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// granting prevents that access to a cluster is granted while the cluster is withdrawn from its Cluster: each Cluster has a lock, by UID, which grants
// share.
type granting struct{ locks sync.Map }

func (g *granting) of(uid types.UID) *sync.RWMutex {
	lock, _ := g.locks.LoadOrStore(uid, &sync.RWMutex{})
	return lock.(*sync.RWMutex)
}

// Begin prevents that the cluster of a Cluster is withdrawn until the returned function is called, which can be called several times. It returns
// false if the cluster is being withdrawn: waiting would delay other clusters, which share the workers.
func (g *granting) Begin(uid types.UID) (given func(), ok bool) {
	lock := g.of(uid)
	return sync.OnceFunc(lock.RUnlock), lock.TryRLock()
}

// End prevents that access to a cluster is granted while it is withdrawn from its Cluster, until the returned function is called. It does not wait:
// it returns false while access is being granted.
func (g *granting) End(uid types.UID) (ended func(), ok bool) {
	lock := g.of(uid)
	return lock.Unlock, lock.TryLock()
}

// notHeldError returns an error with the reason ClusterNotHeld if the Cluster no longer has its cluster.
func notHeldError(ctx context.Context, provider clusterprovider.Provider, cluster *v1alpha1.Cluster) error {
	withdrawer, ok := provider.(clusterprovider.Withdrawer)
	if !ok || !cluster.DeletionTimestamp.IsZero() { // the deletion of a Cluster ends its access anyway
		return nil
	}
	why, err := withdrawer.Withdrawn(ctx, cluster)
	if err != nil {
		return fmt.Errorf("checking whether the Cluster '%s' still has its cluster: %w", client.ObjectKeyFromObject(cluster), err)
	}
	if why != "" {
		return hub.Because(hub.ReasonClusterNotHeld, fmt.Errorf("the Cluster '%s': %s", client.ObjectKeyFromObject(cluster), why))
	}
	return nil
}
