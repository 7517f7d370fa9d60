// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
)

// TestAttack_HubCannotRedirectAgent: a detached agent is in the network of the management cluster. A hub that redirects it could otherwise
// reach servers there, with the agent's token.
func TestAttack_HubCannotRedirectAgent(t *testing.T) {
	var visits atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(inside.Close)
	hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(hostile.Close)
	certificate, key := agenttest.Certificate(t, "agent")
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"by a token":       {Token: "t"},
		"by a certificate": {ClientCertificateData: certificate, ClientKeyData: key},
	} {
		t.Run(name, func(t *testing.T) {
			config := clientcmdapi.NewConfig()
			config.Clusters["c"] = &clientcmdapi.Cluster{Server: hostile.URL,
				CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hostile.Certificate().Raw})}
			config.AuthInfos["u"] = user
			config.Contexts["x"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
			way, err := hub.BootstrapConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			way, _, err = hub.Renewable(way)
			if err != nil {
				t.Fatal(err)
			}
			h, err := hub.New(way)
			if err != nil {
				t.Fatal(err)
			}
			_, ofKube := h.Kube.CoreV1().Secrets("n").Get(t.Context(), "s", metav1.GetOptions{})
			_, ofCluster := h.Clusters.ClusterV1().ManagedClusters().Get(t.Context(), "c", metav1.GetOptions{})
			_, ofWorks := h.Works.ManifestWorks("n").List(t.Context(), metav1.ListOptions{})
			_, ofWatch := h.Works.ManifestWorks("n").Watch(t.Context(), metav1.ListOptions{})
			for what, err := range map[string]error{"a secret": ofKube, "the cluster": ofCluster, "works": ofWorks, "a watch": ofWatch} {
				if err == nil || !strings.Contains(err.Error(), "redirect") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}
