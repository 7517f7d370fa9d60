// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package join gets an identity on a hub for a cluster with the bootstrap kubeconfig, which needs only the rights to create managedclusters, and to
// create and get certificatesigningrequests.
package join

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// maxPause bounds the time between two checks whether the hub has accepted the cluster.
const maxPause = 15 * time.Second

// Rights returns the rights that joining needs, beside those of the identity's driver. The bootstrap kubeconfigs of several hubs are mounted.
func (j *Joiner) Rights() rights.Rights {
	needs := hub.BootstrapRights
	if j.Hubs != nil {
		needs = rights.Rights{}
	}
	return rights.Sum(needs, spoke.IDRights(j.Spoke.NamespaceScoped), management.TellRights, rights.Rights{Bootstrap: rights.Rules{
		Cluster: []rbacv1.PolicyRule{rights.Rule(clusterv1.GroupName, "managedclusters", "create")}}})
}

// Joiner registers one cluster with one hub.
type Joiner struct {
	// Cluster is the configuration of the ManagedCluster.
	Cluster *hub.ClusterConfig
	Spoke   *spoke.Cluster
	// Home is the cluster that stores the state, and Store the state.
	Home     *management.Cluster
	Store    *state.Store
	Identity identity.Identity
	// Bootstrap reads the bootstrap kubeconfig.
	Bootstrap func(context.Context) (*clientcmdapi.Config, error)
	Connect   hub.Connect
	Health    *health.Health
	// Hubs is set for an agent with several hubs.
	Hubs *hubs.Hubs
	// Random returns a number in [0, 1), for jitter.
	Random func() float64

	// registered is whether this process has created the ManagedCluster, or found that it exists, and newKey whether the hub may know a different key
	// for this agent.
	registered, newKey bool
}

// Join runs until the secret has an identity, or the context ends.
func (j *Joiner) Join(ctx context.Context) {
	j.registered = false
	retry := repeat.Backoff{Shortest: time.Second, Longest: maxPause, Random: j.Random}
	said := &repeat.Said{}
	for ctx.Err() == nil {
		request := j.Store.Get().NextCSR
		done, err := j.step(ctx)
		if done {
			j.newKey = false
			return
		}
		if j.Store.Get().NextCSR != request {
			retry.Reset() // the hub may respond soon to a new request
		}
		if err == nil {
			j.Hubs.Joining(nil)
			j.Health.Waiting("the hub to accept the cluster")
			if said.Again("waiting", "accept") {
				klog.FromContext(ctx).Info("Waiting for the hub to accept the cluster")
			}
		} else {
			err = j.explain(err)
			j.Hubs.Joining(err)
			j.Health.Waiting(err.Error())
			if apierrors.IsUnauthorized(err) && said.Again("token", err.Error()) {
				j.Home.Report(ctx, corev1.EventTypeWarning, "BootstrapTokenRefused", err.Error())
			}
		}
		said.Result(ctx, "registering", err)
		if !repeat.Sleep(ctx, retry.Next()) {
			return
		}
	}
}

// explain adds what to do when the hub rejects the bootstrap token: the agent cannot recover by itself.
func (j *Joiner) explain(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	why := "there is no identity yet"
	if unusable := j.Identity.Usable(j.Store.Get()); unusable != nil {
		why = unusable.Error()
	}
	return fmt.Errorf("%s, and the hub rejects the bootstrap token: it has expired or was revoked. Run kubectl hub get token "+
		"on the hub, and the join command that it prints on this cluster: %w", why, err)
}

// hub returns the bootstrap kubeconfig, and clients of the hub with its rights.
func (j *Joiner) hub(ctx context.Context) (*clientcmdapi.Config, *hub.Hub, error) {
	bootstrap, err := j.Bootstrap(ctx)
	if err != nil {
		return nil, nil, err
	}
	config, err := hub.BootstrapConfig(bootstrap)
	if err != nil {
		return nil, nil, fmt.Errorf("the bootstrap kubeconfig cannot be used: %w", err)
	}
	h, err := j.Connect(config)
	if err != nil {
		return nil, nil, fmt.Errorf("the bootstrap kubeconfig cannot be used: %w", err)
	}
	return bootstrap, h, nil
}

func (j *Joiner) step(ctx context.Context) (bool, error) {
	bootstrap, h, err := j.hub(ctx)
	if err != nil {
		return false, err
	}
	if err := j.Identity.Prepare(ctx); err != nil {
		return false, err
	}
	if !j.registered || !j.Identity.Requested(j.Store.Get()) {
		if err := j.register(ctx, h); err != nil {
			return false, err
		}
		j.registered = true
	}
	return j.Identity.Step(ctx, identity.Bootstrap{Kubeconfig: bootstrap, Hub: h, NewKey: j.newKey})
}

// Refresh rewrites the kubeconfig with the current address of the hub and the current flags, as if it were created now. Without a bootstrap
// kubeconfig it stays unchanged.
func (j *Joiner) Refresh(ctx context.Context) {
	bootstrap, err := j.Bootstrap(ctx)
	if err != nil {
		return
	}
	s := j.Store.Get()
	want, err := hub.Kubeconfig(bootstrap, s.ClusterName, j.Identity.User())
	if err != nil || string(want) == string(s.Kubeconfig) {
		return
	}
	if _, err := j.Store.Update(ctx, func(s *state.State) { s.Kubeconfig = want }); err != nil {
		klog.FromContext(ctx).Info("Could not update the kubeconfig for the hub", "reason", err.Error())
		return
	}
	klog.FromContext(ctx).Info("Updated the kubeconfig for the hub")
}
