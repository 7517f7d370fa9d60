// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent is the program that runs for one managed cluster: it registers the cluster with a hub, gets an identity there, and then runs tasks,
// which maintain the cluster's lease and status and create the namespaces that the hub asks for.
//
// The agent stores its state in one secret on its own cluster (package state). An agent that has an identity uses only that; the bootstrap kubeconfig
// is for getting one (package join). A new task is a folder in tasks and a line in run.go.
package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/agent/join"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// rejoinFor is the time for which the agent tries to get another identity when the hub rejects the current one, before it retries that.
const rejoinFor = 5 * time.Minute

// agent registers one cluster with one hub, and runs its tasks there.
type agent struct {
	*join.Joiner
	view  *hub.View
	tasks []task.Task
}

// run returns when the context ends, or with an error that only an admin can fix.
func (a *agent) run(ctx context.Context) error {
	s, err := a.Start(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", s.ClusterName, "agent", s.AgentName))
	if a.Hubs != nil {
		a.Hubs.Serve(ctx, a.serve)
		return nil
	}
	if err := hubs.Forget(ctx, a.Store, a.Bootstrap); err != nil {
		klog.FromContext(ctx).Info("Could not remove the state of other hubs", "reason", err.Error())
	}
	a.serve(ctx)
	return nil
}

// serve joins the hub, and works with it, until the context ends.
func (a *agent) serve(ctx context.Context) {
	var ended error
	for ctx.Err() == nil {
		if why := a.Identity.Usable(a.Store.Get()); why != nil {
			klog.FromContext(ctx).Info("Registering with the bootstrap kubeconfig", "because", why.Error())
			a.Join(ctx)
			continue
		}
		if errors.Is(ended, hub.ErrRejected) {
			klog.FromContext(ctx).Info("The hub rejects the identity: registering with the bootstrap kubeconfig")
			if err := a.Store.Refused(ctx, registration.RefusalUnknown); err != nil {
				klog.FromContext(ctx).Info("Could not record that the hub rejects the identity", "reason", err.Error())
			}
			limited, cancel := context.WithTimeout(ctx, rejoinFor)
			a.Join(limited)
			cancel()
		}
		ended = a.session(ctx)
	}
}

// session works with the identity of the state. It returns when there is a new one, or this one is no longer usable.
func (a *agent) session(ctx context.Context) error {
	a.Refresh(ctx)
	s := a.Store.Get()
	config, err := a.Identity.Config(s, s.Kubeconfig)
	var h *hub.Hub
	if err == nil {
		h, err = a.Connect(config)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The kubeconfig for the hub is broken: registering again")
		a.Join(ctx)
		return err
	}
	a.view.Begin()
	return task.Session{Hub: h, State: s, Random: a.Random}.Run(ctx, a.sessionTasks())
}

func (a *agent) sessionTasks() []task.Task { return a.tasks }
