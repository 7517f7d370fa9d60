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

// giving keeps access from being given to a cluster while that is taken from its Cluster: each has a lock, by the Cluster's UID,
// which is shared by those who give.
type giving struct{ locks sync.Map }

func (g *giving) of(uid types.UID) *sync.RWMutex {
	lock, _ := g.locks.LoadOrStore(uid, &sync.RWMutex{})
	return lock.(*sync.RWMutex)
}

// begin is called before access is given. It returns what is to be called afterwards, which can be called again. It returns
// false if the cluster is being taken: waiting would hold up other clusters, which share the workers.
func (g *giving) begin(uid types.UID) (given func(), ok bool) {
	lock := g.of(uid)
	return sync.OnceFunc(lock.RUnlock), lock.TryRLock()
}

// end does not wait either: it returns false while access is being given.
func (g *giving) end(uid types.UID) (ended func(), ok bool) {
	lock := g.of(uid)
	return lock.Unlock, lock.TryLock()
}

// Giving keeps the cluster of a Cluster from being taken until what it returns is called, once or more often. It returns false if the
// cluster is being taken.
func (r *Reconciler) Giving(uid types.UID) (given func(), ok bool) { return r.giving.begin(uid) }

// Taking keeps access to a cluster from being given while that is taken from its Cluster, until what it returns is called.
// It does not wait: it returns false while access is being given.
func (r *Reconciler) Taking(uid types.UID) (ended func(), ok bool) { return r.giving.end(uid) }

// withheld is an error with the reason ClusterNotHeld if the Cluster does not have its cluster any more.
func (r *Reconciler) withheld(ctx context.Context, cluster *v1alpha1.Cluster) error {
	withdrawer, ok := r.provider.(clusterprovider.Withdrawer)
	if !ok || !cluster.DeletionTimestamp.IsZero() { // the end of a Cluster ends its access anyway
		return nil
	}
	why, err := withdrawer.Withdrawn(ctx, cluster)
	if err != nil {
		return fmt.Errorf("whether the Cluster '%s' still has its cluster: %w", client.ObjectKeyFromObject(cluster), err)
	}
	if why != "" {
		return hub.Because(hub.ReasonClusterNotHeld, fmt.Errorf("the Cluster '%s': %s", client.ObjectKeyFromObject(cluster), why))
	}
	return nil
}
