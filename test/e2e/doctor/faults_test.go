// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// smallEtcd is a quota that a test can fill.
const smallEtcd = 8 << 20

// storageFull fills the hub's etcd, as agents could before they are accepted. Deleting their objects is the remedy.
func storageFull(t *testing.T, w *world) {
	clusters := harness.Ours(t, w.hub.AdminConfig()).ClusterV1().ManagedClusters()
	made := 0
	fill := func(ctx context.Context) error {
		for made < smallEtcd>>16 {
			c := harness.ManagedCluster(fmt.Sprintf("noise-%d", made), nil)
			c.Annotations = map[string]string{"noise": strings.Repeat("x", 200<<10)}
			if _, err := clusters.Create(ctx, c, metav1.CreateOptions{}); err != nil {
				return err
			}
			made++
		}
		t.Fatalf("%d clusters do not fill it", made)
		return nil
	}
	var f finding
	harness.Eventually(t, "it is full, and doctor says so", func(ctx context.Context) (bool, error) {
		if err := fill(ctx); apierrors.ReasonForError(err) != "InsufficientStorage" {
			return false, err
		}
		r := w.doctor(t, onHub)
		if got := r.has("StorageFull", "etcd"); got != nil {
			f = *got
			return true, nil
		}
		return harness.Holds(false, r)
	})
	harness.Contains(t, f.Cause, "refuses writes because the storage is full", "The largest of ", " is noise-")
	w.paste(t, f)
	w.healthy(t, onHub)
	for i := range made {
		if err := clusters.Delete(t.Context(), fmt.Sprintf("noise-%d", i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// clockOff simulates a hub whose clock is ten minutes behind with a proxy. The command that sets a machine's clock corrects the proxy.
func clockOff(t *testing.T, w *world) {
	admin := w.hub.AdminConfig()
	server := harness.Must(url.Parse(admin.Host))(t)
	dir := t.TempDir()
	isSet := filepath.Join(dir, "set")
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Transport: harness.Must(rest.TransportFor(admin))(t),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(server) },
		ModifyResponse: func(r *http.Response) error {
			if _, err := os.Stat(isSet); err != nil {
				r.Header.Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
			}
			return nil
		},
	})
	defer proxy.Close()
	config := harness.Must(clientcmd.LoadFromFile(w.plugin.Kubeconfig))(t)
	config.Clusters["behind"] = &clientcmdapi.Cluster{Server: proxy.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})}
	config.Contexts["behind"] = &clientcmdapi.Context{Cluster: "behind"}
	behind := &world{hub: w.hub, plugin: harness.Plugin{Kubeconfig: filepath.Join(dir, "kubeconfig")}, path: dir}
	if err := clientcmd.WriteToFile(*config, behind.plugin.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"sudo": `exec "$@"`, "timedatectl": `[ "$*" = "set-ntp true" ] && : >` + isSet} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	behind.found(t, "behind", "ClockSkew", "lease/hub-controller-manager", []string{" in the future: its clock is ahead"})
	behind.paste(t, behind.found(t, "behind", "ClockSkew", "clock/local", []string{"10m0s ahead of that of the hub"}))
	behind.healthy(t, "behind")
}
