// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
)

// After changeBurst reconciles because of changes on a managed cluster, one reconcile per changeInterval is allowed. The own cluster, which is trusted
// more, has higher limits.
const (
	changeBurst       = 10
	changeInterval    = 10 * time.Second
	ownChangeBurst    = 20
	ownChangeInterval = 2 * time.Second
)

// connection is a managed cluster that is reached with a source, for one Klusterlet. It is replaced when the source changes.
type connection struct {
	*reach.Connection
	client client.Client
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
func (c *connection) isCluster(ctx context.Context, id string) (bool, error) {
	if have := c.id.Load(); have != nil {
		return string(*have) == id, nil
	}
	system := &corev1.Namespace{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return false, fmt.Errorf("reading namespace %s, whose UID identifies the cluster: %s", metav1.NamespaceSystem, c.Explain(err))
	}
	if system.UID == "" {
		return false, fmt.Errorf("namespace %s has no UID, which identifies the cluster", metav1.NamespaceSystem)
	}
	c.id.Store(&system.UID)
	return string(system.UID) == id, nil
}

// settled has the applied objects and how long they are known to be unchanged.
type settled struct {
	// hash is the hash of the objects.
	hash string
	// accounts are the UIDs of the ServiceAccounts.
	accounts map[string]types.UID
	// until is the time until which this is valid if an object was found that is not watched. Otherwise it is zero.
	until time.Time
}

// isSettled reports whether the same objects were applied, and nothing has changed since.
func (c *connection) isSettled(name, hash string, now time.Time) bool {
	s := c.settled.Load()
	return s != nil && s.hash == hash && (s.until.IsZero() || now.Before(s.until)) && !c.observations.isStale(name)
}

// hashOf returns a hash of objects.
func hashOf(objects []*unstructured.Unstructured) string {
	h := sha256.New()
	for _, o := range objects {
		_ = json.NewEncoder(h).Encode(o.Object) // objects decoded from JSON can be encoded, and writing to a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// connections has the managed clusters with open connections.
type connections struct {
	// ctx stops all of them. enqueue enqueues a Klusterlet.
	ctx     context.Context
	enqueue func(name string)
	// wrap wraps the clients. It may be nil.
	wrap func(client.Client) client.Client

	reach.Pool[*connection]
}

// get returns the managed cluster of a Klusterlet, which has the mark there. managementUID is the UID of the management cluster.
func (l *connections) get(name string, mark mark, managementUID string, source *mint.Source) (*connection, error) {
	return l.Get(name, source.Hash()+string(mark.uid), func() (*connection, error) { return l.open(name, mark, managementUID, source) })
}

func (l *connections) open(name string, mark mark, managementUID string, source *mint.Source) (*connection, error) {
	to, err := reach.New(source, reach.Options{UserAgent: Manager})
	if err != nil {
		return nil, err
	}
	live, err := to.Client(client.Options{Mapper: plan.Mapper()})
	if err != nil {
		return nil, errors.New(to.Explain(err))
	}
	objects, err := to.Metadata()
	if err != nil {
		return nil, errors.New(to.Explain(err))
	}
	ctx, stop := context.WithCancel(l.ctx)
	c := &connection{Connection: to, client: client.Client(live), stop: stop}
	if l.wrap != nil {
		c.client = l.wrap(live)
	}
	c.observations = &observations{enqueue: l.enqueue, burst: changeBurst, interval: changeInterval}
	var all []objectSet
	for _, kinds := range [][]apply.Mapping{plan.Owned, plan.Shared} {
		for _, kind := range kinds {
			set := objectSet{kind: kind, label: mark.key}
			if !plan.IsSharedKind(kind) {
				set.label = selectorOf(name, managementUID)
			}
			if plan.IsOnManaged(kind) {
				all = append(all, set)
			}
		}
	}
	c.watches = listen(ctx, objects, c.observations, all)
	return c, nil
}

// Close stops the watches, and closes idle connections.
func (c *connection) Close() {
	c.stop()
	c.Connection.Close()
}
