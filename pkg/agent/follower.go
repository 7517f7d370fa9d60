// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The intervals of the checks for another identity, less a quarter at most: files cost nothing, and the Secret costs a request.
const (
	folderInterval = 5 * time.Second
	secretInterval = 15 * time.Second
)

// follower applies works with an identity that another process gets. It cannot join: it waits for an identity, uses it as long as it is valid, and
// waits for the next.
type follower struct {
	// read reads the state of the other process, and where names its source. needs are the rights that read needs.
	read  func(context.Context) (state.State, error)
	where string
	needs rights.Rights
	every time.Duration

	drivers identity.Drivers
	connect hub.Connect
	health  *health.Health
	random  func() float64
	works   task.Task
}

var _ part = &follower{}

func (p *process) newFollower(c *clusters) *follower {
	f := &follower{drivers: p.Drivers, connect: hub.Bounded(p.Works.HubRequests), health: p.health, random: rand.Float64, works: work.New(p.works(), c.own)}
	if dir := p.HubKubeconfigDir; dir != "" {
		f.where, f.every = "the folder "+dir, folderInterval
		f.read = func(context.Context) (state.State, error) { return state.ReadFolder(dir) }
		return f
	}
	store := &state.Store{Client: c.home.Client, Namespace: c.home.Namespace}
	f.read, f.needs = store.Load, state.ReadRights
	f.where, f.every = fmt.Sprintf("the secret %s/%s", c.home.Namespace, registration.HubKubeconfigSecret), secretInterval
	return f
}

func (f *follower) rights() rights.Rights { return rights.Sum(f.needs, f.works.Rights) }

// found is an identity that was read.
type found struct {
	state.State
	own identity.Identity
}

// sameHub reports whether another identity belongs to the same agent on the same hub: then only its certificate may differ.
func (id *found) sameHub(as *found) bool {
	return bytes.Equal(id.Kubeconfig, as.Kubeconfig) && id.ClusterName == as.ClusterName && id.AgentName == as.AgentName &&
		(len(id.Cert) > 0) == (len(as.Cert) > 0)
}

func (id *found) same(as *found) bool {
	return id.sameHub(as) && bytes.Equal(id.Cert, as.Cert) && bytes.Equal(id.Key, as.Key)
}

// load returns the current identity, if it can be used.
func (f *follower) load(ctx context.Context) (*found, error) {
	s, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	if len(s.Kubeconfig) == 0 || s.ClusterName == "" {
		return nil, fmt.Errorf("there is no identity in %s: the agent that registers the cluster writes it once the hub has accepted the cluster", f.where)
	}
	own, err := f.drivers.Find(s)
	if err == nil {
		err = own.Usable(s)
	}
	if err != nil {
		return nil, fmt.Errorf("the identity in %s cannot be used: %w", f.where, err)
	}
	return &found{s, own}, nil
}

// refused is an identity that could not be used. It may be retried after a while: the hub may have been wrong.
type refused struct {
	*found
	until time.Time
	why   error
}

// run returns when the context ends.
func (f *follower) run(ctx context.Context) error {
	var bad *refused
	for {
		id := f.await(ctx, bad)
		if id == nil {
			return nil
		}
		log := klog.FromContext(ctx).WithValues("cluster", id.ClusterName, "agent", id.AgentName)
		log.Info("Applying works", "identity", f.where)
		last, err := f.session(klog.NewContext(ctx, log), id)
		if ctx.Err() != nil {
			return nil
		}
		bad = nil
		if err != nil {
			log.Info("The identity cannot be used: waiting for another one", "reason", err.Error())
			bad = &refused{found: last, until: time.Now().Add(rejoinFor), why: err}
		}
	}
}

// await returns the next identity, or nil if the context ends.
func (f *follower) await(ctx context.Context, bad *refused) *found {
	said := &repeat.Said{}
	for {
		id, err := f.load(ctx)
		switch {
		case err != nil:
		case bad == nil || !id.same(bad.found) || time.Now().After(bad.until):
			return id
		default:
			err = fmt.Errorf("waiting for another identity, since the one in %s cannot be used: %w", f.where, bad.why)
		}
		if ctx.Err() != nil {
			return nil
		}
		f.health.Waiting(err.Error())
		said.Result(ctx, "waiting for an identity", err)
		if !repeat.Sleep(ctx, repeat.Jittered(f.every, f.random)) {
			return nil
		}
	}
}

// session applies works with an identity, until it is no longer usable or a different kind of identity is read. A renewed certificate does not
// interrupt it. last is the identity that it ended with.
func (f *follower) session(ctx context.Context, id *found) (last *found, err error) {
	last = id
	config, err := id.own.Config(id.State, id.Kubeconfig)
	if err != nil {
		return last, err
	}
	config, certificate, err := hub.Renewable(config)
	if err != nil {
		return last, err
	}
	f.health.Waiting("the hub to answer")
	rejected := make(chan struct{})
	hub.Listen(config, f.listen(ctx, rejected))
	h, err := f.connect(config)
	if err != nil {
		return last, err
	}
	s := task.Session{Hub: h, State: id.State, Random: f.random}
	err = s.Run(ctx, f.tasks(&last, certificate, rejected))
	return last, err
}

// sessionTasks returns the tasks of a session for test/wiring, which does not run them.
func (f *follower) sessionTasks() []task.Task { return f.tasks(nil, nil, nil) }

// tasks returns the tasks of a session with the identity *last. It replaces the identity when its certificate is renewed.
func (f *follower) tasks(last **found, certificate *hub.Certificate, rejected <-chan struct{}) []task.Task {
	following := task.Task{Name: "following the identity", Run: func(ctx context.Context, _ task.Session) error {
		said := &repeat.Said{}
		for repeat.Sleep(ctx, repeat.Jittered(f.every, f.random)) {
			next, err := f.load(ctx)
			said.Result(ctx, "reading the identity", err)
			switch {
			case err != nil: // the previous identity is still valid
				if why := (*last).own.Usable((*last).State); why != nil {
					return task.Over(why)
				}
			case !next.sameHub(*last):
				return task.Over(nil)
			case certificate != nil && !next.same(*last):
				if err := certificate.Renew(next.Cert, next.Key); err != nil {
					return err
				}
				klog.FromContext(ctx).Info("Loaded the renewed certificate")
				*last = next
			}
		}
		return nil
	}}
	listening := task.Task{Name: "listening to the hub", Run: func(ctx context.Context, _ task.Session) error {
		select {
		case <-ctx.Done():
			return nil
		case <-rejected:
			return task.Over(hub.ErrRejected)
		}
	}}
	return []task.Task{f.works, following, listening}
}

// listen returns a function that updates the readiness with the results of requests, and closes rejected when the hub does not know the identity.
func (f *follower) listen(ctx context.Context, rejected chan<- struct{}) func(error) {
	var mu sync.Mutex
	n := 0
	reject := sync.OnceFunc(func() { close(rejected) })
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			n = 0
			f.health.Good()
			return
		}
		f.health.Waiting(hub.Refused(err).Error())
		if !apierrors.IsUnauthorized(err) {
			n = 0
			return
		}
		n++
		if n >= hub.Rejections {
			reject()
		}
	}
}
