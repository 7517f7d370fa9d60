// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

func get(t *testing.T, config *rest.Config, path string) (string, error) {
	t.Helper()
	data, err := kube(t, config).Discovery().RESTClient().Get().RequestURI(path).DoRaw(t.Context())
	return string(data), err
}

func TestServer_TellsHowItIs(t *testing.T) {
	config := hub.HubAPIServerConfig(0)
	for path, parts := range map[string][]string{
		"/readyz?verbose": {"[+]etcd ok", "[+]informer-sync ok", "[+]clustersetmembers ok", "[+]poststarthook/serving-certificate ok",
			"[+]poststarthook/priority-and-fairness-config-consumer ok", "[+]shutdown ok"},
		"/livez":   {"ok"},
		"/version": {"gitVersion"},
		"/metrics": {"apiserver_request_total", "apiserver_watch_cache", "etcd_request_duration_seconds", "workqueue_"},
	} {
		out, err := get(t, config, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		contains(t, out, parts...)
	}
	// Metrics are not for everybody.
	_, err := get(t, hub.HubAPIServerUserConfig(0, unique("nobody"), "system:authenticated"), "/metrics")
	wantForbidden(t, err)
	// A stranger may ask for health and nothing else.
	stranger := rest.AnonymousClientConfig(config)
	if _, err := get(t, stranger, "/readyz"); err != nil {
		t.Errorf("a probe without a name: %v", err)
	}
	if _, err := get(t, stranger, clustersPath); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger gets %v from %s", err, clustersPath)
	}
}

// TestServer_IsReadyWhenItKnowsItsClients: from the moment that it is ready, requests are sent to it.
func TestServer_IsReadyWhenItKnowsItsClients(t *testing.T) {
	for range 3 { // the moment is short
		p := startProcess(t, t.TempDir())
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, timeout, true, func(context.Context) (bool, error) {
			_, err := get(t, p.config(), "/readyz")
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("it is not ready: %s", p.out.String())
		}
		if _, err := ours(t, p.config()).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("a ready hub-apiserver takes the admin for a stranger: %v", err)
		}
		p.terminate(t)
	}
}

func TestServer_TrustsNoHeadersWithoutTheFrontsCertificate(t *testing.T) {
	config := rest.AnonymousClientConfig(hub.HubAPIServerConfig(0))
	config.WrapTransport = nil
	client := restClient(t, config)
	err := client.Get().Resource("managedclusters").
		SetHeader("X-Remote-User", "admin").SetHeader("X-Remote-Group", "system:masters").Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("with forged headers: %v", err)
	}
}

// TestLocalHub_SaysWhatIsWrong covers what a newcomer meets.
func TestLocalHub_SaysWhatIsWrong(t *testing.T) {
	start := func(t *testing.T, c localhub.Config) string {
		t.Helper()
		h, err := localhub.Start(t.Context(), c)
		if err == nil {
			h.Stop()
			t.Fatal("the hub has started")
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %v", err)
		}
		return err.Error()
	}
	t.Run("a missing tool", func(t *testing.T) {
		c := hubConfig(t.TempDir())
		c.BinDir = t.TempDir()
		contains(t, start(t, c), "is missing", "make build kube")
	})
	t.Run("a taken port", func(t *testing.T) {
		listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		c := hubConfig(t.TempDir())
		ports := must(json.Marshal(map[string]int{"kube-apiserver": port}))(t)
		if err := os.WriteFile(filepath.Join(c.Dir, "ports.json"), ports, 0o600); err != nil {
			t.Fatal(err)
		}
		contains(t, start(t, c), fmt.Sprint(port), "kube-apiserver", "taken", "ports.json")
	})
	t.Run("a process that dies at its start", func(t *testing.T) {
		c := hubConfig(t.TempDir())
		c.FrontArgs = []string{"--no-such-flag"}
		contains(t, start(t, c), "kube-apiserver has ended", "no-such-flag", "kube-apiserver.log")
	})
}
