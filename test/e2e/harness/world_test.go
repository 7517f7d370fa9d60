// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// TestOpenWorld_OnlyFoldersWithMatchingFlags verifies which folders use the hub of make world: the others get nil, and start their own hub. No hub runs.
func TestOpenWorld_OnlyFoldersWithMatchingFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "world")
	for name, test := range map[string]struct {
		dir    string
		change func(*localhub.Options)
		asks   bool
	}{
		"no world":          {"", func(*localhub.Options) {}, false},
		"no flags":          {missing, func(*localhub.Options) {}, true},
		"one of its flags":  {missing, func(c *localhub.Options) { c.HubAPIServerArgs = []string{"--agent-writes-burst=100000"} }, true},
		"another flag":      {missing, func(c *localhub.Options) { c.HubAPIServerArgs = []string{"--agent-writes-burst=1"} }, false},
		"other controllers": {missing, func(c *localhub.Options) { c.HubControllerManagerArgs = nil }, false},
		"one replica":       {missing, func(c *localhub.Options) { c.Replicas = 1 }, false},
		"a plain cluster":   {missing, func(c *localhub.Options) { c.Plain = true }, false},
	} {
		hub, err := openWorld(test.dir, []func(*localhub.Options){test.change})
		if hub != nil || (err != nil) != test.asks || err != nil && !strings.Contains(err.Error(), "make world") {
			t.Errorf("%s: got %v, %v", name, hub, err)
		}
	}
}

// TestOpenWorld_HubUnavailable verifies that the error is immediate and names the remedy. The front is a fake server with configurable
// responses.
func TestOpenWorld_HubUnavailable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		front  func(http.ResponseWriter, *http.Request)
		killed bool
		serves bool
	}{
		"ready":                    {front: func(http.ResponseWriter, *http.Request) {}, serves: true},
		"killed":                   {front: func(http.ResponseWriter, *http.Request) {}, killed: true},
		"not ready":                {front: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"killed before it started": {},
	} {
		dir := t.TempDir()
		hub, err := localhub.Open(worldConfig(dir))
		if err != nil {
			t.Fatal(err)
		}
		if test.front != nil {
			mux := http.NewServeMux()
			mux.HandleFunc("/readyz", test.front)
			front := httptest.NewTLSServer(mux)
			defer front.Close()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
			if err := clientcmd.WriteToFile(clientcmdapi.Config{
				Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: front.URL, CertificateAuthorityData: ca}},
				Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub"}},
				CurrentContext: "hub",
			}, hub.AdminKubeconfig()); err != nil {
				t.Fatal(err)
			}
			if test.killed {
				front.Close()
			}
		}
		opened, err := openWorld(dir, []func(*localhub.Options){func(*localhub.Options) {}})
		if (opened != nil) != test.serves || (err == nil) != test.serves || err != nil && !strings.Contains(err.Error(), "make world") {
			t.Errorf("%s: got %v, %v", name, opened, err)
		}
	}
}
