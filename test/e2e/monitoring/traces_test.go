// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestTraces_SpanWholeHub verifies that the trace of an admin's request extends from the front through hub-apiserver to its etcd. Other users
// cannot choose the trace of their requests.
func TestTraces_SpanWholeHub(t *testing.T) {
	const name = "traced"
	traces := &collector{spans: map[string][]string{}}
	traced := traces.serve(t)
	// The embedded etcd is no separate server, so no spans exist between it and hub-apiserver.
	h := harness.OwnHub(t, func(c *localhub.Options) {
		c.ExternalEtcd, c.Replicas = true, 1
		c.FrontArgs, c.HubAPIServerArgs = append(c.FrontArgs, traced), append(c.HubAPIServerArgs, traced)
	})
	harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(name, nil), metav1.CreateOptions{}))(t)
	trace := ask(t, h.AdminConfig(), name)
	harness.Eventually(t, "one trace has the front, hub-apiserver and etcd", func(context.Context) (bool, error) {
		spans := traces.of(trace)
		// Both servers handle the request in the same trace, and one of them writes to etcd.
		handled, etcd := 0, false
		for _, span := range spans {
			if strings.HasSuffix(span, "/managedclusters/{:name}") {
				handled++
			}
			etcd = etcd || strings.HasPrefix(span, "etcdserverpb.KV/Txn")
		}
		return harness.Holds(handled == 2 && etcd, spans)
	})
	// The user has a separate token: for the front's tracing, a user whom an admin impersonates is still an admin.
	user := rest.AnonymousClientConfig(h.AdminConfig())
	harness.Grant(t, h, "tracer", "tracer", harness.Rule("get,patch", "managedclusters", name))
	user.BearerToken = token(t, h, metav1.NamespaceDefault, "tracer")
	theirs, after := ask(t, user, name), ask(t, h.AdminConfig(), name)
	harness.Eventually(t, "what was asked after it has been told", func(context.Context) (bool, error) {
		spans := traces.of(after)
		return harness.Holds(len(spans) > 2, spans)
	})
	if spans := traces.of(theirs); len(spans) > 0 {
		t.Errorf("a user has put spans into a trace: %q", spans)
	}
}

// ask writes a cluster as part of a new trace, whose ID it returns. Writes always reach etcd, whatever is cached.
func ask(t *testing.T, config *rest.Config, cluster string) (trace string) {
	t.Helper()
	id := make([]byte, 24)
	_, _ = rand.Read(id)
	trace = hex.EncodeToString(id[:16])
	config.Wrap(func(to http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("traceparent", "00-"+trace+"-"+hex.EncodeToString(id[16:])+"-01")
			return to.RoundTrip(r)
		})
	})
	harness.Must(harness.RESTClient(t, config).Patch("application/merge-patch+json").AbsPath("/apis/cluster.open-cluster-management.io/v1/managedclusters", cluster).
		Body([]byte(`{"metadata":{"annotations":{"trace":"` + trace + `"}}}`)).DoRaw(t.Context()))(t)
	return trace
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
