// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
)

// After changesAtOnce reconciles because of changes on a managed cluster, one reconcile per changeEach is allowed. The own cluster, which is trusted
// more, has higher limits.
const (
	changesAtOnce    = 10
	changeEach       = 10 * time.Second
	ownChangesAtOnce = 20
	ownChangeEach    = 2 * time.Second
)

// outside is a managed cluster that is reached with a source, for one Klusterlet. It is replaced when the source changes.
type outside struct {
	*outer.Connection
	client client.Client
	hash   string
	stop   context.CancelFunc

	// observations reports whether anything has changed since it was settled. While nothing has, no request is sent.
	observations *observations
	watches      listening
	settled      atomic.Pointer[settled]
	// id is the identity of the cluster, once it is known.
	id atomic.Pointer[types.UID]
}

// isCluster reports whether this is the cluster with the id, the UID of its namespace kube-system. The id is read once: while the source is the same,
// so is the cluster. A cluster that is not trusted may claim any id: that must harm no other cluster.
func (o *outside) isCluster(ctx context.Context, id string) (bool, error) {
	if have := o.id.Load(); have != nil {
		return string(*have) == id, nil
	}
	system := &corev1.Namespace{}
	if err := o.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return false, fmt.Errorf("reading namespace %s, whose UID identifies the cluster: %s", metav1.NamespaceSystem, o.Explain(err))
	}
	if system.UID == "" {
		return false, fmt.Errorf("namespace %s has no UID, which identifies the cluster", metav1.NamespaceSystem)
	}
	o.id.Store(&system.UID)
	return string(system.UID) == id, nil
}

// settled has the applied objects and how long they are known to be unchanged.
type settled struct {
	what string
	// accounts are the UIDs of the ServiceAccounts.
	accounts map[string]types.UID
	// until is the time until which this is valid if an object was found that is not watched. Otherwise it is zero.
	until time.Time
}

// isSettled reports whether the same objects were applied, and nothing has changed since.
func (o *outside) isSettled(name, what string, now time.Time) bool {
	s := o.settled.Load()
	return s != nil && s.what == what && (s.until.IsZero() || now.Before(s.until)) && !o.observations.hasNews(name)
}

// outsides has the managed clusters with open connections.
type outsides struct {
	// ctx stops all of them. wake enqueues a Klusterlet.
	ctx  context.Context
	wake func(name string)
	// wrap wraps the clients. It may be nil.
	wrap func(client.Client) client.Client

	lock sync.Mutex
	all  map[string]*outside
}

// get returns the managed cluster of a Klusterlet.
func (l *outsides) get(k *operatorv1.Klusterlet, management string, source *kubeconfig.Source) (*outside, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	hash := source.Hash() + string(k.UID)
	if have := l.all[k.Name]; have != nil {
		if have.hash == hash {
			return have, nil
		}
		have.end()
		delete(l.all, k.Name)
	}
	reached, err := outer.New(source, outer.Options{UserAgent: Manager})
	if err != nil {
		return nil, err
	}
	c, err := reached.Client(client.Options{Mapper: mapper()})
	if err != nil {
		return nil, errors.New(reached.Explain(err))
	}
	objects, err := reached.Metadata()
	if err != nil {
		return nil, errors.New(reached.Explain(err))
	}
	ctx, stop := context.WithCancel(l.ctx)
	o := &outside{Connection: reached, client: client.Client(c), hash: hash, stop: stop}
	if l.wrap != nil {
		o.client = l.wrap(c)
	}
	o.observations = &observations{wake: l.wake, atOnce: changesAtOnce, each: changeEach}
	own := markOf(k.Name, k.UID, management).key
	var all []objectSet
	for _, kinds := range [][]kind{owned, shared} {
		for _, kind := range kinds {
			w := objectSet{kind: kind, label: own}
			if !isSharedKind(kind) {
				w.label = selectorOf(k.Name, management)
			}
			if isOnManaged(kind) {
				all = append(all, w)
			}
		}
	}
	o.watches = listen(ctx, objects, o.observations, all)
	if l.all == nil {
		l.all = map[string]*outside{}
	}
	l.all[k.Name] = o
	return o, nil
}

func (o *outside) end() {
	o.stop()
	o.Close()
}

// drop stops the connection of a Klusterlet.
func (l *outsides) drop(name string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if have := l.all[name]; have != nil {
		have.end()
		delete(l.all, name)
	}
}
