// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/access"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/cluster"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/leader"
	metrics "github.com/clusterhub/clusterhub/pkg/command/metrics/manager"
)

const (
	// gracefulShutdown is the maximum duration of running reconciles at shutdown.
	gracefulShutdown = 10 * time.Second
	// firstBackoff and maxBackoff limit the delay of a provider after a cluster was unreachable.
	firstBackoff, maxBackoff = 200 * time.Millisecond, 30 * time.Second
)

func (o *options) run(ctx context.Context, provider clusterprovider.Provider, newManager NewManager) error {
	managerOptions := o.managerOptions()
	election := command.NewLeaderElection(o.identity().Group(), o.Namespace)
	election.Enabled = o.leaderElect
	var err error
	managerOptions.LeaderElectionResourceLockInterface, err = leader.Lock(o.Hub, election)
	if err != nil {
		return fmt.Errorf("creating the lock for leader election: %w", err)
	}
	mgr, err := newManager(o.Hub, managerOptions)
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := o.setup(ctx, mgr, provider); err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	err = mgr.Start(ctx)
	// No method is called after this.
	if closer, ok := provider.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	return err
}

func (o *options) managerOptions() ctrl.Options {
	graceful := gracefulShutdown
	return ctrl.Options{
		Scheme: hub.Scheme,
		Cache:  cache.Options{DefaultTransform: command.ForCache},
		// A cache lists and watches the Secrets of the whole hub.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		HealthProbeBindAddress:        o.healthAddress,
		Metrics:                       metrics.None,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              o.identity().Group(),
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &graceful,
		Controller:                    config.Controller{SkipNameValidation: new(true)},
	}
}

func controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxBackoff),
	}
}

func (o *options) setup(ctx context.Context, mgr ctrl.Manager, provider clusterprovider.Provider) error {
	index := mgr.GetFieldIndexer()
	if err := errors.Join(
		index.IndexField(ctx, &v1alpha1.Cluster{}, hub.ByProfile, func(object client.Object) []string {
			return []string{object.(*v1alpha1.Cluster).Spec.Profile}
		}),
		index.IndexField(ctx, &v1alpha1.AccessRequest{}, hub.ByCluster, func(object client.Object) []string {
			if ref := object.(*v1alpha1.AccessRequest).Spec.ClusterRef; ref != nil {
				return []string{ref.NamespacedName().String()}
			}
			return nil
		}),
	); err != nil {
		return err
	}
	own := o.identity()
	recorder := mgr.GetEventRecorder("cluster-provider-" + own.Name)
	given := access.New(own, provider, mgr.GetClient(), mgr.GetAPIReader(), recorder)
	kept := cluster.New(own, provider, mgr.GetClient(), recorder, given)
	return errors.Join(
		metrics.Add(ctx, mgr, o.metrics),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(request *http.Request) error { return synced(request.Context(), mgr.GetCache()) }),
		mgr.Add(&profiles{Identity: own, provider: provider, client: mgr.GetClient(), live: mgr.GetAPIReader(), events: recorder}),
		kept.Setup(mgr, controllerOptions(o.workers)),
		given.Setup(mgr, controllerOptions(o.workers), o.anyOIDCPrefix),
	)
}

// synced returns an error while the caches are not synced with the hub.
func synced(ctx context.Context, caches cache.Cache) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if !caches.WaitForCacheSync(ctx) {
		return errors.New("the caches are not synced with the hub yet")
	}
	return nil
}
