// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestServer_ReportsHealth(t *testing.T) {
	config := harness.Hub(t).HubAPIServerConfig(0)
	for path, parts := range map[string][]string{
		"/readyz?verbose": {"[+]etcd ok", "[+]informer-sync ok", "[+]clustersetmembers ok", "[+]poststarthook/serving-certificate ok",
			"[+]poststarthook/priority-and-fairness-config-consumer ok", "[+]shutdown ok"},
		"/livez":   {"ok"},
		"/version": {"gitVersion"},
		"/metrics": {"apiserver_request_total", "apiserver_watch_cache", "etcd_request_duration_seconds", "workqueue_"},
	} {
		out, err := harness.Get(t, config, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		harness.Contains(t, out, parts...)
	}
	// Metrics require a right.
	_, err := harness.Get(t, harness.Hub(t).HubAPIServerUserConfig(0, harness.Unique("nobody"), "system:authenticated"), "/metrics")
	harness.WantForbidden(t, err)
	// An anonymous client may request health and nothing else.
	stranger := rest.AnonymousClientConfig(config)
	if _, err := harness.Get(t, stranger, "/readyz"); err != nil {
		t.Errorf("a probe without a name: %v", err)
	}
	if _, err := harness.Get(t, stranger, clustersPath); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger gets %v from %s", err, clustersPath)
	}
}

// TestServer_IsReadyWithClientCAs verifies that a ready server authenticates its clients, as requests are routed to it from then on.
func TestServer_IsReadyWithClientCAs(t *testing.T) {
	for range 3 { // the window is short
		p := startProcess(t, t.TempDir())
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, harness.Timeout, true, func(context.Context) (bool, error) {
			_, err := harness.Get(t, p.config(), "/readyz")
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("it is not ready: %s", p.out.String())
		}
		if _, err := harness.Ours(t, p.config()).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("a ready hub-apiserver takes the admin for a stranger: %v", err)
		}
		p.terminate(t)
	}
}

func TestServer_RejectsHeadersWithoutFrontCertificate(t *testing.T) {
	config := rest.AnonymousClientConfig(harness.Hub(t).HubAPIServerConfig(0))
	config.WrapTransport = nil
	client := harness.RESTClient(t, config)
	err := client.Get().Resource("managedclusters").
		SetHeader("X-Remote-User", "admin").SetHeader("X-Remote-Group", "system:masters").Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("with forged headers: %v", err)
	}
}
