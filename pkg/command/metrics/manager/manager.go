// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager serves the metrics of programs that use controller-runtime.
package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterhub/clusterhub/pkg/command/metrics"
)

// None makes controller-runtime serve no metrics itself, to avoid its own authentication.
var None = metricsserver.Options{BindAddress: metrics.Off}

// Add serves the metrics of the process as long as the manager runs, whether it leads or not, and before its caches have synced. Clients authenticate
// with tokens of the manager's API server.
func Add(ctx context.Context, mgr ctrl.Manager, o metrics.Options) error {
	server := metrics.New(o, promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if o.AuthenticatesClients() {
		if err := server.Use(mgr.GetConfig()); err != nil {
			return err
		}
	}
	listener, err := server.Listen(ctx)
	if err != nil {
		return fmt.Errorf("listening on --metrics-bind-address: %w", err)
	}
	if listener == nil {
		return nil
	}
	soon := time.Second
	return mgr.Add(&ctrlmanager.Server{Name: "metrics", Server: server.HTTP(), Listener: listener, ShutdownTimeout: &soon})
}

// CreatedResources returns the resources that the program needs the right to create.
func CreatedResources(o metrics.Options) []schema.GroupVersionResource {
	if !o.AuthenticatesClients() {
		return nil
	}
	return []schema.GroupVersionResource{
		authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"), authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"),
	}
}
