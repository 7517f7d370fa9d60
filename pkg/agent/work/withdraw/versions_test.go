// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// An object that was applied in a version that the cluster no longer serves exists in another version. No other requests are sent: none for all
// groups.
func TestFinalize_InServedVersion(t *testing.T) {
	w := newWorld(t)
	scalers := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	old := apply.Target{GroupVersionResource: scalers, Namespace: w.namespace, Name: "old"}
	old.Version = "v2beta9"
	missing := old
	missing.Resource = "vanished"
	owner := w.record("w", missing, old)
	scaler := worktest.Parse(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: old}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}`)
	scaler.SetOwnerReferences([]metav1.OwnerReference{owner.Reference()})
	if _, err := w.client.Resource(scalers).Namespace(w.namespace).Create(t.Context(), scaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := worktest.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if path := strings.Trim(r.URL.Path, "/"); path == "api" || path == "apis" {
				t.Errorf("all that the cluster serves is asked for: %s", r.URL)
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	w.cluster, err = New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.end(Keep)
	have, err := w.client.Resource(scalers).Namespace(w.namespace).Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil || len(have.GetOwnerReferences()) > 0 {
		t.Errorf("it is %v, %v", have, err)
	}
}

// A cluster that is not trusted returns any number of versions of the group, none of which has the resource.
func TestOtherVersion_HostileCluster(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		var answer any = metav1.APIResourceList{APIResources: make([]metav1.APIResource, 1000)}
		if r.URL.Path == "/apis/example.com" {
			group := metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}, {Version: "../../api"}}}
			for i := range 10_000 {
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: fmt.Sprintf("v1beta%d", i)})
			}
			answer = group
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	things := apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}, Name: "x"}
	_, ok, err := c.otherVersion(t.Context(), things)
	if ok || err == nil || !strings.Contains(err.Error(), "more than 10 versions") {
		t.Errorf("it is found: %t, %v", ok, err)
	}
	if n := requests.Load(); n != 1+maxVersions {
		t.Errorf("%d requests", n)
	}
}
