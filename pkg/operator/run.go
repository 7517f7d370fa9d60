// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/leader"
	metrics "github.com/clusterhub/clusterhub/pkg/command/metrics/manager"
)

const (
	// cacheSyncTimeout is infinite in practice: missing CustomResourceDefinitions are no reason to restart.
	cacheSyncTimeout = 100 * 365 * 24 * time.Hour
	// gracefulShutdown is the maximum duration of running reconciles at shutdown. The Lease is released after them.
	gracefulShutdown = 10 * time.Second
)

// Run runs the controllers until the context ends, and then releases the Lease. It returns an error when leadership is lost.
func (o *Options) Run(ctx context.Context) error {
	restConfig, err := command.RESTConfig(o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("hub-operator cannot start: reading --kubeconfig: %w", err)
	}
	return o.RunWith(ctx, restConfig)
}

// RunWith does so with a configuration for the management cluster.
func (o *Options) RunWith(ctx context.Context, restConfig *rest.Config) error {
	mgr, err := o.Assemble(ctx, restConfig, ctrlmanager.New)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Assemble returns the manager that RunWith starts. newManager creates it without controllers, as manager.New of controller-runtime does.
func (o *Options) Assemble(
	ctx context.Context, restConfig *rest.Config, newManager func(*rest.Config, ctrlmanager.Options) (ctrlmanager.Manager, error),
) (ctrlmanager.Manager, error) {
	restConfig = rest.AddUserAgent(rest.CopyConfig(restConfig), "hub-operator")
	restConfig.QPS, restConfig.Burst = o.QPS, o.Burst
	managerOptions := o.managerOptions()
	var err error
	managerOptions.LeaderElectionResourceLockInterface, err = leader.Lock(restConfig, o.LeaderElection)
	if err != nil {
		return nil, fmt.Errorf("hub-operator cannot start: assembling the leader election: %w", err)
	}
	mgr, err := newManager(restConfig, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("hub-operator cannot start: assembling the manager: %w", err)
	}
	for _, controller := range o.enabled() {
		if err := controller.Setup(ctx, mgr); err != nil {
			return nil, fmt.Errorf("hub-operator cannot start: assembling the controller %s: %w", controller.Name, err)
		}
	}
	if err := errors.Join(metrics.Add(ctx, mgr, o.Metrics), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("hub-operator cannot start: %w", err)
	}
	return mgr, nil
}

func (o *Options) managerOptions() ctrlmanager.Options {
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(operatorv1.AddToScheme, corev1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		panic(err) // two types with the same name: a programming error
	}
	graceful := gracefulShutdown
	return ctrlmanager.Options{
		Scheme: scheme,
		Cache: cache.Options{
			// A read must not start a watch that no controller has set up.
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            command.ForCache,
		},
		Metrics:                       metrics.None,
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElection.Enabled,
		LeaderElectionID:              o.LeaderElection.Name,
		LeaderElectionNamespace:       o.LeaderElection.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod,
		GracefulShutdownTimeout:       &graceful,
		Controller: config.Controller{
			CacheSyncTimeout: cacheSyncTimeout,
			// Names must be unique in a manager only; a process may have several managers, one after the other.
			SkipNameValidation: new(true),
		},
	}
}
