// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentrate limits how often the agents of a cluster write.
//
// Priority and fairness limits the share of the server that an agent has at a time. It does not limit how much the agent writes in an hour, and every
// version of every object stays in etcd until it is compacted. Agents need few writes: a status when something changes.
package agentrate

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// WithLimit responds with 429 to the agents of a cluster that write more. It does not limit the writes of others, and reads.
func WithLimit(handler http.Handler, limit agentlimit.Limit, serializer runtime.NegotiatedSerializer) http.Handler {
	if limit.PerSecond <= 0 {
		return handler
	}
	l := agentlimit.New(limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		who, known := request.UserFrom(r.Context())
		if info == nil || !known || !info.IsResourceRequest || !slices.Contains(writes, info.Verb) {
			handler.ServeHTTP(w, r)
			return
		}
		cluster, agent := registration.ClusterOfAgent(who.GetGroups())
		if !agent || l.Accept(cluster) {
			handler.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewTooManyRequests(fmt.Sprintf("the agents of cluster %s write more than %g times a second (and %d times at once): "+
			"try again later", cluster, limit.PerSecond, limit.Burst), limit.Wait())
		responsewriters.ErrorNegotiated(err, serializer, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
	})
}
