// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/leader"
	metrics "github.com/clusterhub/clusterhub/pkg/command/metrics/manager"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
)

const (
	// cacheSyncTimeout is practically infinite: the process must not restart because a server is away for long. Health and log report that it
	// waits.
	cacheSyncTimeout = 100 * 365 * 24 * time.Hour
	// gracefulShutdown is the maximum time for running reconciliations to end. The Lease is released after them.
	gracefulShutdown = 10 * time.Second
)

// Run runs the controllers until the context ends, and then releases the Lease, so that another process takes over at once. It returns an error
// when leadership is lost: reconciliations must not continue then.
func (o *Options) Run(ctx context.Context) error {
	mgr, err := o.Assemble(ctx, ctrlmanager.New)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Assemble returns the manager that Run starts. newManager creates it without runnables, as manager.New of controller-runtime does.
func (o *Options) Assemble(ctx context.Context, newManager func(*rest.Config, ctrlmanager.Options) (ctrlmanager.Manager, error)) (ctrlmanager.Manager, error) {
	restConfig, err := o.restConfig()
	if err != nil {
		return nil, explain("reading --kubeconfig", err)
	}
	managerOptions := o.managerOptions()
	managerOptions.LeaderElectionResourceLockInterface, err = leader.Lock(restConfig, o.LeaderElection)
	if err != nil {
		return nil, explain("assembling the leader election", err)
	}
	mgr, err := newManager(restConfig, managerOptions)
	if err != nil {
		return nil, explain("assembling the manager", err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return nil, explain("client of the hub's kube-apiserver", err)
	}
	c := &controllers{Options: o, manager: mgr, served: discoveryClient}
	if o.runs(registrationControllers) {
		c.drivers, err = o.Registration.drivers(ctx, restConfig, mgr.GetClient())
		if err != nil {
			return nil, explain("assembling the registration", err)
		}
	}
	if o.runs(accessControllers) {
		c.scheduling, err = o.Access.Scheduler.Load()
		if err != nil {
			return nil, explain("reading the configuration", err)
		}
	}
	if c.scheduling != nil {
		// Processes that do not lead follow it, too.
		if err := mgr.Add(c.scheduling); err != nil {
			return nil, explain("assembling the manager", err)
		}
	}
	if o.beats() {
		acts, err := leader.Heartbeat(restConfig, o.LeaderElection)
		if err = errors.Join(err, mgr.Add(acts)); err != nil {
			return nil, explain("assembling the manager", err)
		}
	}
	if operator := o.operator(restConfig); operator != nil {
		if err := mgr.Add(operator); err != nil {
			return nil, explain("assembling the manager", err)
		}
	}
	if err := errors.Join(metrics.Add(ctx, mgr, o.Metrics), mgr.Add(c), mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("controllers", c.ready)); err != nil {
		return nil, explain("assembling the manager", err)
	}
	return mgr, nil
}

// beats reports whether the process renews the Lease without an election.
func (o *Options) beats() bool {
	return !o.LeaderElection.Enabled && len(o.LeaderElection.Validate()) == 0
}

// explain returns an error at start with a message of one line.
func explain(what string, err error) error {
	return fmt.Errorf("hub-controller-manager cannot start: %s: %w", what, err)
}

// restConfig returns the configuration for the hub's kube-apiserver.
func (o *Options) restConfig() (*rest.Config, error) {
	restConfig, err := command.RESTConfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	restConfig.QPS, restConfig.Burst = o.QPS, o.Burst
	return rest.AddUserAgent(restConfig, "hub-controller-manager"), nil
}

func (o *Options) managerOptions() ctrlmanager.Options {
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme,
		apiregistrationv1.AddToScheme, authenticationv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, openmcpv1alpha1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme,
		workv1.AddToScheme, workv1alpha1.AddToScheme, edgev1alpha1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		panic(err) // two types with one name are a bug
	}
	graceful := gracefulShutdown
	return ctrlmanager.Options{
		Scheme:         scheme,
		MapperProvider: newMapper,
		Cache: cache.Options{
			// A read must not start a watch that no controller has set up.
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            manifestworkreplicaset.ForCache, // also applies the transform of all programs to other kinds
			ByObject:                    ofClusters(),
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
			// Names must be unique in a manager only; a process may have several, one after the other.
			SkipNameValidation: new(true),
		},
	}
}

// controllers runs the controllers of the leader.
type controllers struct {
	*Options
	manager    ctrl.Manager
	served     discovery.ServerResourcesInterface
	drivers    driver.Drivers
	scheduling *clusterscheduler.LiveConfig

	started atomic.Bool
}

var _ ctrlmanager.LeaderElectionRunnable = &controllers{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *controllers) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it adds the controllers once what they watch is served.
func (c *controllers) Start(ctx context.Context) error {
	enabled := c.enabled()
	if err := waitUntilServed(ctx, c.served, c.manager.GetRESTMapper(), watched(enabled), pollInterval); err != nil {
		return nil // the context has ended
	}
	assembly := &held{Manager: c.manager}
	for _, controller := range enabled {
		if err := controller.Setup(ctx, assembly); err != nil {
			return explain("assembling the controllers", err)
		}
	}
	if err := assembly.release(); err != nil {
		return explain("starting the controllers", err)
	}
	c.started.Store(true)
	return nil
}

// held is a manager that stores what is added to it until it is released. A manager that runs already would start a controller before the builder
// has added its watches: the controller would not wait for these, and would reconcile from incomplete caches.
type held struct {
	ctrl.Manager
	runnables []ctrlmanager.Runnable
}

// Add implements manager.Manager.
func (h *held) Add(runnable ctrlmanager.Runnable) error {
	h.runnables = append(h.runnables, runnable)
	return nil
}

func (h *held) release() error {
	var errs []error
	for _, runnable := range h.runnables {
		errs = append(errs, h.Manager.Add(runnable))
	}
	return errors.Join(errs...)
}

// ready returns nil if the process does not lead, or its controllers have started.
func (c *controllers) ready(*http.Request) error {
	select {
	case <-c.manager.Elected():
		if !c.started.Load() {
			return errors.New("waiting for hub-apiserver to serve its APIs")
		}
	default:
	}
	return nil
}
