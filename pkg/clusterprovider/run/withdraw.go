// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

// giving keeps access from being given to a cluster while that is taken from its Cluster: each has a lock, by the Cluster's UID,
// which is shared by those who give.
type giving struct{ locks sync.Map }

func (g *giving) of(uid types.UID) *sync.RWMutex {
	lock, _ := g.locks.LoadOrStore(uid, &sync.RWMutex{})
	return lock.(*sync.RWMutex)
}

// begin is called before access is given, and returns what is called then, once or more often. It waits for nobody, since all
// clusters share those who would wait: it returns false if the cluster is being taken.
func (g *giving) begin(uid types.UID) (given func(), ok bool) {
	lock := g.of(uid)
	return sync.OnceFunc(lock.RUnlock), lock.TryRLock()
}

// end waits for nobody, either: it returns false if somebody is giving access.
func (g *giving) end(uid types.UID) (ended func(), ok bool) {
	lock := g.of(uid)
	return lock.Unlock, lock.TryLock()
}

// withheld is an error with the reason ClusterNotHeld if the Cluster does not have its cluster any more.
func (r *access) withheld(ctx context.Context, cluster *v1alpha1.Cluster) error {
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

// withdraw lets others have the cluster of a Cluster which may not have it any more, once no access is left in it. The status of
// the Cluster says so already, so nobody who starts now gives any; who has begun is waited for. The AccessRequests have their own
// Secrets and status cleaned up meanwhile: what they say does not matter to the next one who has the cluster.
func (r *clusters) withdraw(ctx context.Context, cluster *v1alpha1.Cluster, state clusterprovider.State) (reconcile.Result, error) {
	if state.Release == nil {
		return reconcile.Result{RequeueAfter: retryAfter(state)}, nil
	}
	ended, ok := r.giving.end(cluster.UID)
	if !ok {
		return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
	}
	defer ended()
	ctx, cancel := context.WithTimeout(ctx, closeAllTimeout)
	defer cancel()
	if err := r.sayTaken(ctx, cluster); err != nil {
		return hub.Settle(err)
	}
	if err := r.closeAccess(ctx, cluster); err != nil {
		return reconcile.Result{}, fmt.Errorf("taking back the access to a cluster that is withdrawn: %w", err)
	}
	if err := r.closeRest(ctx, cluster); err != nil {
		return reconcile.Result{}, fmt.Errorf("taking back the access to a cluster that is withdrawn: %w", err)
	}
	if err := state.Release(ctx); err != nil {
		return hub.Settle(err)
	}
	ctrl.LoggerFrom(ctx).Info("Took the cluster from its Cluster, and all access to it", "reason", state.Info)
	return reconcile.Result{RequeueAfter: retryAfter(state)}, nil
}

// sayTaken has all requests of a Cluster say that they have no access, before that is taken: while they say that they have it, they
// are believed, and if the Cluster gets the cluster back meanwhile, nobody would give it again. So it is said of those as well that are
// not looked at, such as ignored ones.
func (r *clusters) sayTaken(ctx context.Context, cluster *v1alpha1.Cluster) error {
	list, name := &v1alpha1.AccessRequestList{}, client.ObjectKeyFromObject(cluster).String()
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: name}); err != nil {
		return err
	}
	for i := range list.Items {
		ar := &list.Items[i]
		said := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
		has := answer.MayHaveAccess(ar) || controllerutil.ContainsFinalizer(ar, r.AccessFinalizer())
		if !has || !ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied() || said != nil && said.Reason == hub.ReasonClusterNotHeld {
			continue
		}
		before := ar.DeepCopy()
		answer.BeingTaken(ar, cluster)
		if err := hub.PatchStatus(ctx, r.client, before, ar); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// withdrawnInterval is how often it is looked whether an ignored Cluster still has its cluster.
const withdrawnInterval = 30 * time.Second

// withdrawIgnored takes its cluster from a Cluster that is to be ignored: whoever may annotate it must not keep the cluster by that.
// The object is left alone.
func (r *clusters) withdrawIgnored(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	withdrawer, ok := r.provider.(clusterprovider.Withdrawer)
	if !ok || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	look := reconcile.Result{RequeueAfter: withdrawnInterval}
	why, err := withdrawer.Withdrawn(ctx, cluster)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot tell whether an ignored Cluster still has its cluster", "reason", err.Error())
	}
	if err != nil || why == "" {
		return look, nil
	}
	state, err := r.provider.Ensure(ctx, cluster.DeepCopy(), profile)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !state.Withdrawn {
		return look, nil
	}
	return r.withdraw(ctx, cluster, state)
}

// closeRest takes back access that the caches do not know of, or not as such: the cluster itself says what was given for which
// Cluster.
func (r *clusters) closeRest(ctx context.Context, cluster *v1alpha1.Cluster) error {
	config, err := r.provider.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	if truster, ok := r.provider.(clusterprovider.OIDCTruster); ok {
		if err := truster.TrustOIDC(ctx, cluster.DeepCopy(), nil); err != nil {
			return err
		}
	}
	config = rest.CopyConfig(config)
	config.Timeout = target.CloseTimeout
	t, err := target.New(config, nil, nil)
	if err != nil {
		return err
	}
	return r.leftovers.RemoveAll(ctx, t, cluster)
}
