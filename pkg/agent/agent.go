// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent is what runs for one managed cluster: it registers the cluster with a hub, gets it an identity there,
// keeps its lease and its status up to date, and makes the namespaces that the hub asks for.
//
// What an agent remembers is in one secret on its own cluster, and is written there before the hub is told, so that an
// agent that is killed at any line goes on from there. An agent that has an identity works with that alone; the
// bootstrap kubeconfig is for getting one. It needs no more rights than to create managedclusters, and to create and get
// certificatesigningrequests.
package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// longestJoinPause is the longest time between two looks at whether the hub has accepted the cluster.
	longestJoinPause = 15 * time.Second
	// rejoinFor is how long another identity is sought when the hub does not take the one that there is, before that one is
	// tried again.
	rejoinFor = 5 * time.Minute
	// rejections is how often in a row the hub has to say that it does not know the agent before it is believed.
	rejections = 5
)

// errRejected ends a session in which the hub does not know the agent's identity, which is otherwise good.
var errRejected = errors.New("the hub does not take the agent's identity")

// agent registers one cluster with one hub.
type agent struct {
	settings  settings
	spoke     kubernetes.Interface
	store     *store
	identity  identity
	facts     facts
	bootstrap func(context.Context) (*clientcmdapi.Config, error)
	connect   func(*rest.Config) (*hub, error)
	random    func() float64
	health    *health

	// registered says that this process has made the cluster, or found it made, newKey that the hub may know another key than
	// this agent's, and seen that the hub has let this process see its cluster, or has been asked to make it anew.
	registered, newKey, seen bool

	leaseSeconds atomic.Int32
	kicked       chan struct{}

	mu         sync.Mutex
	conditions map[string]metav1.Condition
}

// settings are what an agent is told of its cluster.
type settings struct {
	// clusterName may be empty: then it is that of the secret, or made from the cluster's id.
	clusterName  string
	serverURL    string
	serverCA     []byte
	annotations  map[string]string
	leaseSeconds int32
	namespace    string
}

// run returns when the context ends, or with what only an admin can put right.
func (a *agent) run(ctx context.Context) error {
	s, err := a.start(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", s.clusterName, "agent", s.agentName))
	var ended error
	for ctx.Err() == nil {
		if why := a.identity.usable(a.store.get()); why != nil {
			klog.FromContext(ctx).Info("Registering with the bootstrap kubeconfig", "because", why.Error())
			a.join(ctx)
			continue
		}
		if errors.Is(ended, errRejected) {
			klog.FromContext(ctx).Info("The hub does not take the identity any more: registering with the bootstrap kubeconfig")
			limited, cancel := context.WithTimeout(ctx, rejoinFor)
			a.join(limited)
			cancel()
		}
		ended = a.session(ctx)
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start reads the state and settles the names, and waits for the agent's own cluster to answer.
func (a *agent) start(ctx context.Context) (state, error) {
	a.leaseSeconds.Store(a.settings.leaseSeconds)
	retry := backoff{shortest: time.Second, longest: longestJoinPause, random: a.random}
	said := &said{}
	for {
		a.health.waiting("the agent's own cluster")
		s, err := a.names(ctx)
		var wrong *settingsError
		if err == nil || errors.As(err, &wrong) {
			return s, err
		}
		said.result(ctx, "reading the agent's state", err)
		if !sleep(ctx, retry.next()) {
			return state{}, ctx.Err()
		}
	}
}

// settingsError is a mistake that waiting does not put right.
type settingsError struct{ message string }

func (e *settingsError) Error() string { return e.message }

func (a *agent) names(ctx context.Context) (state, error) {
	s, err := a.store.load(ctx)
	if err != nil {
		return state{}, err
	}
	name := a.settings.clusterName
	if s.clusterName != "" && name != "" && s.clusterName != name {
		return state{}, &settingsError{fmt.Sprintf("--cluster-name is %s, but this cluster is registered as %s: run hub-agent "+
			"unjoin first, or leave the flag out", name, s.clusterName)}
	}
	if name == "" {
		name = s.clusterName
	}
	if name == "" {
		id, err := clusterID(ctx, a.spoke)
		if err != nil {
			return state{}, err
		}
		name = id
	}
	if s.clusterName != "" && s.agentName != "" {
		return s, nil
	}
	return a.store.update(ctx, func(s *state) {
		s.clusterName = name
		if s.agentName == "" {
			s.agentName = rand.String(10)
		}
	})
}

// join goes on until there is an identity in the secret, or the context ends.
func (a *agent) join(ctx context.Context) {
	a.registered = false
	retry := backoff{shortest: time.Second, longest: longestJoinPause, random: a.random}
	said := &said{}
	for ctx.Err() == nil {
		request := a.store.get().nextCSR
		done, err := a.joinStep(ctx)
		if done {
			a.newKey = false
			return
		}
		if a.store.get().nextCSR != request {
			retry.reset() // what is new may be answered soon
		}
		if err == nil {
			a.health.waiting("the hub to accept the cluster")
			if said.again("waiting", "accept") {
				klog.FromContext(ctx).Info("Waiting for the hub to accept the cluster")
			}
		} else {
			err = a.explain(err)
			a.health.waiting(err.Error())
			if apierrors.IsUnauthorized(err) && said.again("token", err.Error()) {
				a.tell(ctx, corev1.EventTypeWarning, "BootstrapTokenRefused", err.Error())
			}
		}
		said.result(ctx, "registering", err)
		if !sleep(ctx, retry.next()) {
			return
		}
	}
}

// explain says what to do when the hub does not know the bootstrap token: the agent cannot come back by itself.
func (a *agent) explain(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	why := "there is no identity yet"
	if unusable := a.identity.usable(a.store.get()); unusable != nil {
		why = unusable.Error()
	}
	return fmt.Errorf("%s, and the hub does not take the bootstrap token, which has expired or was revoked: on the hub run kubectl "+
		"hub get token, and on this cluster the join command that it prints: %w", why, err)
}

// bootstrapHub is the hub as the bootstrap kubeconfig reaches it.
func (a *agent) bootstrapHub(ctx context.Context) (*clientcmdapi.Config, *hub, error) {
	bootstrap, err := a.bootstrap(ctx)
	if err != nil {
		return nil, nil, err
	}
	config, err := restConfig(bootstrap)
	if err != nil {
		return nil, nil, fmt.Errorf("the bootstrap kubeconfig cannot be used: %w", err)
	}
	h, err := a.connect(config)
	if err != nil {
		return nil, nil, fmt.Errorf("the bootstrap kubeconfig cannot be used: %w", err)
	}
	return bootstrap, h, nil
}

func (a *agent) joinStep(ctx context.Context) (bool, error) {
	bootstrap, h, err := a.bootstrapHub(ctx)
	if err != nil {
		return false, err
	}
	if err := a.identity.prepare(ctx); err != nil {
		return false, err
	}
	if !a.registered || !a.identity.asked(a.store.get()) {
		if err := a.register(ctx, h); err != nil {
			return false, err
		}
		a.registered = true
	}
	return a.identity.step(ctx, bootstrap, h)
}

// session works with the identity of the secret. It returns when there is another, or this one is of no use any more.
func (a *agent) session(ctx context.Context) error {
	a.refreshKubeconfig(ctx)
	s := a.store.get()
	config, err := a.identity.config(s, s.kubeconfig)
	var h *hub
	if err == nil {
		h, err = a.connect(config)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The kubeconfig for the hub is broken: registering again")
		a.join(ctx)
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	rejected := &rejection{end: func() { cancel(errRejected) }}
	lease, status := a.leaseLoop(h, rejected), a.statusLoop(h)
	running.Go(func() { lease.run(ctx) })
	running.Go(func() { status.run(ctx) })
	err = a.identity.keep(ctx, h)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	running.Wait()
	return err
}

// refreshKubeconfig follows a hub that has moved, and flags that have changed: the kubeconfig is what it would be if it
// were made now. Without a bootstrap kubeconfig it stays as it is.
func (a *agent) refreshKubeconfig(ctx context.Context) {
	bootstrap, err := a.bootstrap(ctx)
	if err != nil {
		return
	}
	s := a.store.get()
	want, err := hubKubeconfig(bootstrap, s.clusterName, a.identity.user())
	if err != nil || string(want) == string(s.kubeconfig) {
		return
	}
	if _, err := a.store.update(ctx, func(s *state) { s.kubeconfig = want }); err != nil {
		klog.FromContext(ctx).Info("The kubeconfig for the hub could not be brought up to date", "reason", err.Error())
		return
	}
	klog.FromContext(ctx).Info("Brought the kubeconfig for the hub up to date")
}

// rejection counts how often in a row the hub has said that it does not know the agent.
type rejection struct {
	end   func()
	count int
}

func (r *rejection) observe(err error) {
	if !apierrors.IsUnauthorized(err) {
		r.count = 0
		return
	}
	if r.count++; r.count >= rejections {
		r.end()
	}
}

// report sets a condition, and has the hub told of it soon.
func (a *agent) report(condition metav1.Condition) {
	a.mu.Lock()
	if a.conditions == nil {
		a.conditions = map[string]metav1.Condition{}
	}
	a.conditions[condition.Type] = condition
	a.mu.Unlock()
	a.kick()
}

func (a *agent) reported() []metav1.Condition {
	a.mu.Lock()
	defer a.mu.Unlock()
	reported := make([]metav1.Condition, 0, len(a.conditions))
	for _, condition := range a.conditions {
		reported = append(reported, condition)
	}
	return reported
}

// kick asks for the status to be looked at.
func (a *agent) kick() {
	select {
	case a.kicked <- struct{}{}:
	default: // it will be, already
	}
}

// tell logs something that an admin should know, and makes an event of it.
func (a *agent) tell(ctx context.Context, eventType, reason, message string) {
	log := klog.FromContext(ctx)
	log.Info(message)
	now := metav1.Now()
	_, err := a.spoke.CoreV1().Events(a.settings.namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-agent-", Namespace: a.settings.namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: a.settings.namespace, Name: registration.HubKubeconfigSecret},
		Type: eventType, Reason: reason, Message: message,
		Source:         corev1.EventSource{Component: "hub-agent"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		log.Info("The event could not be written", "reason", err.Error())
	}
}
