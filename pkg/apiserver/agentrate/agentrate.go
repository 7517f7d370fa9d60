// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentrate bounds how often the agents of a cluster write.
//
// Priority and fairness bounds how much of the server one agent has at a time. It does not bound how much the agent writes
// in an hour, and every version of every object stays in etcd until it is compacted. Agents have little to say: a status
// when something changes.
package agentrate

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// maxClusters bounds the memory. Each has one who has proven to be its agent.
const maxClusters = 1 << 18

// Limit is how often the agents of one cluster may write, through one replica.
type Limit struct {
	// PerSecond is the rate in the long run; 0 is no limit.
	PerSecond float64
	// Burst is how many writes may come at once after a time without any.
	Burst int
}

// refill is the time after which it does not matter what was written before.
func (l Limit) refill() time.Duration {
	return time.Duration(math.Ceil(float64(l.Burst)/l.PerSecond)) * time.Second
}

// limiter counts the writes of each cluster's agents.
type limiter struct {
	limit    Limit
	mu       sync.Mutex
	clusters *cache.LRUExpireCache
}

// accept says whether the agents of a cluster may write once more now.
func (l *limiter) accept(cluster string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.clusters.Get(cluster)
	if !ok {
		found = flowcontrol.NewTokenBucketRateLimiter(float32(l.limit.PerSecond), l.limit.Burst)
	}
	l.clusters.Add(cluster, found, l.limit.refill())
	return found.(flowcontrol.PassiveRateLimiter).TryAccept()
}

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// WithLimit answers 429 to the agents of a cluster that writes more. What others write, and what agents read, passes.
func WithLimit(handler http.Handler, limit Limit, serializer runtime.NegotiatedSerializer) http.Handler {
	if limit.PerSecond <= 0 {
		return handler
	}
	l := &limiter{limit: limit, clusters: cache.NewLRUExpireCache(maxClusters)}
	wait := int(math.Ceil(1 / limit.PerSecond))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		who, known := request.UserFrom(r.Context())
		if info == nil || !known || !info.IsResourceRequest || !slices.Contains(writes, info.Verb) {
			handler.ServeHTTP(w, r)
			return
		}
		cluster, agent := registration.ClusterOfAgent(who.GetGroups())
		if !agent || l.accept(cluster) {
			handler.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewTooManyRequests(fmt.Sprintf("the agents of cluster %s write more than %g times a second (and %d times at once): "+
			"try again later", cluster, limit.PerSecond, limit.Burst), wait)
		responsewriters.ErrorNegotiated(err, serializer, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
	})
}
