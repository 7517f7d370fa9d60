// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// checkInterval is the interval of checks whether the processes run.
const checkInterval = time.Second

// A process hangs if it has responded once, and then fails that many probes in a row. kubeadm configures the same interval for the liveness probes of
// these servers, but allows eight failures, on machines with more load.
const (
	probeInterval = 10 * time.Second
	hungAfter     = 4
)

// Watch detects when a process exits or hangs, and deletes leftovers of Clusters that were deleted without a call of Remove.
func (p *Provider) Watch(
	ctx context.Context, changed func(types.NamespacedName), exist func(context.Context) (sets.Set[types.UID], error),
) {
	p.changed.Store(&changed)
	// Record the running processes first, so that no exit is missed.
	running := map[localserver.Process]bool{}
	p.look(ctx, running, changed)
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.prune(ctx, exist); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Deleting leftovers of deleted Clusters failed and will be retried")
		}
	}, clusterprovider.ResyncInterval)
	probed := map[localserver.Process]probes{}
	go wait.UntilWithContext(ctx, func(ctx context.Context) { p.probe(ctx, probed, answerTimeout) }, probeInterval)
	wait.UntilWithContext(ctx, func(ctx context.Context) { p.look(ctx, running, changed) }, checkInterval)
}

// notify enqueues a Cluster.
func (p *Provider) notify(cluster types.NamespacedName) {
	if changed := p.changed.Load(); changed != nil {
		(*changed)(cluster)
	}
}

// prune lists the existing Clusters after the folders: so no new Cluster counts as deleted.
func (p *Provider) prune(ctx context.Context, exist func(context.Context) (sets.Set[types.UID], error)) error {
	uids, err := p.uids()
	if err != nil || len(uids) == 0 {
		return err
	}
	existing, err := exist(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, uid := range uids {
		if existing.Has(uid) {
			continue
		}
		err := p.remove(ctx, p.cluster(uid))
		if err == nil {
			klog.FromContext(ctx).Info("Deleted the leftovers of a deleted Cluster", "uid", uid)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// look calls changed for each cluster of which a process has exited that was running at the last check. A cluster that is in use is checked again
// later.
func (p *Provider) look(ctx context.Context, running map[localserver.Process]bool, changed func(types.NamespacedName)) {
	logger := klog.FromContext(ctx)
	ended := func(proc localserver.Process) bool {
		before := running[proc]
		now, err := proc.Running()
		if err != nil {
			logger.Error(err, "Checking whether a process runs failed", "process", proc.Name, "dir", proc.Dir)
			return false
		}
		running[proc] = now
		if !now {
			delete(running, proc)
		}
		if before && !now {
			logger.Error(proc.Ended(), "Restarting a process that exited")
		}
		return before && !now
	}
	withoutEtcd := false
	if p.etcdMu.TryLock() {
		withoutEtcd = ended(p.etcdProcess())
		p.etcdMu.Unlock()
	}
	uids, err := p.uids()
	if err != nil {
		logger.Error(err, "Listing the clusters failed")
		return
	}
	for _, uid := range uids {
		c, again := p.cluster(uid), withoutEtcd
		if mu := p.clusters.of(uid); mu.TryLock() {
			for _, name := range []string{apiServer, controllerManager} {
				again = ended(c.process(name)) || again
			}
			mu.Unlock()
		}
		if r, err := c.read(); again && err == nil { // one without a record has not been started
			changed(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		}
	}
}

// probes is the state of a process: it has responded, and since then failed that many probes in a row.
type probes struct{ pid, failed int }

// probe checks whether etcd and the kube-apiservers are alive, and kills those that hang, so that they are detected like others that have exited. It
// skips processes that have not responded since their start, and clusters that are in use.
func (p *Provider) probe(ctx context.Context, probed map[localserver.Process]probes, timeout time.Duration) {
	logger := klog.FromContext(ctx)
	ask := func(proc localserver.Process, mu *sync.Mutex, alive func(context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		before, now := probed[proc], probes{pid: proc.PID()}
		if err := alive(ctx); err != nil {
			if running, _ := proc.Running(); !running || before.pid != now.pid {
				delete(probed, proc)
				return
			}
			now.failed = before.failed + 1
		}
		probed[proc] = now
		if now.failed < hungAfter || !mu.TryLock() {
			return
		}
		defer mu.Unlock()
		if proc.PID() == now.pid {
			logger.Error(proc.Kill(), "Restarting a process that does not respond", "process", proc.Name, "dir", proc.Dir)
		}
	}
	var e etcdRecord
	if err := readJSON(p.etcdFile("etcd.json"), &e); err == nil {
		ask(p.etcdProcess(), &p.etcdMu, p.etcd(e).Alive)
	}
	uids, err := p.uids()
	if err != nil {
		logger.Error(err, "Listing the clusters failed")
	}
	for _, uid := range uids {
		c := p.cluster(uid)
		r, err := c.read()
		if err != nil { // it has not been started
			continue
		}
		if admin, err := c.admin(r); err == nil {
			ask(c.process(apiServer), p.clusters.of(uid), admin.alive)
		}
	}
}
