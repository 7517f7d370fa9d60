// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A managed cluster that is not trusted cannot redirect requests of the agent, let alone with its token.
func TestClusters_CannotRedirectAgent(t *testing.T) {
	var visits atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer inside.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL+r.URL.Path, code)
		}))
		defer hostile.Close()
		config := &rest.Config{Host: hostile.URL, BearerToken: "t"}
		own, err := New(config, "n")
		if err != nil {
			t.Fatal(err)
		}
		home, err := NewManagement(config, "n")
		if err != nil {
			t.Fatal(err)
		}
		_, ofID := own.ID(t.Context())
		_, ofVersion := own.Client.Discovery().ServerVersion()
		_, ofWatch := own.Watching.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		_, ofSecret := home.Client.CoreV1().Secrets("n").Get(t.Context(), "s", metav1.GetOptions{})
		client, err := rest.HTTPClientFor(own.Config)
		if err != nil {
			t.Fatal(err)
		}
		response, ofOther := client.Get(hostile.URL)
		if response != nil {
			_ = response.Body.Close()
		}
		for what, err := range map[string]error{"the id": ofID, "the version": ofVersion, "a watch": ofWatch, "a secret": ofSecret, "other clients": ofOther} {
			if err == nil || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("%d, %s: %v", code, what, err)
			}
		}
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}

// The limits are for the managed cluster, which also stores the agent's secrets unless the agent is detached.
func TestOptions_LimitRequestsToManagedCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = &clientcmdapi.Cluster{Server: "https://c"}, &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, detached := range []bool{false, true} {
		o := NewOptions()
		o.Kubeconfig, o.Detached, o.Requests.QPS, o.Requests.Burst = file, detached, 7, 9
		if detached {
			o.ManagementKubeconfig = file
		}
		managed, err := o.Managed()
		if err != nil {
			t.Fatal(err)
		}
		own, err := New(managed.Config, "n")
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range []kubernetes.Interface{own.Client, own.Watching} {
			if qps := client.CoreV1().RESTClient().GetRateLimiter().QPS(); qps != 7 {
				t.Errorf("%g requests per second go to the managed cluster", qps)
			}
		}
		home, err := o.Management()
		if err != nil {
			t.Fatal(err)
		}
		if bounded := home.Config.QPS == 7 && home.Config.Burst == 9; bounded == detached {
			t.Errorf("detached is %t, and the management cluster is asked %g per second", detached, home.Config.QPS)
		}
	}
}

// If both clusters are the same, the agent has two namespaces there, unless they have the same name.
func TestOptions_SecretsOnSameCluster(t *testing.T) {
	for _, test := range []struct {
		managed         string
		same            bool
		namespace, home string
	}{
		{"", false, "n", ""}, {"", true, "n", ""}, {"n", true, "n", ""}, {"m", false, "m", ""}, {"m", true, "m", "n"},
	} {
		o := Options{Namespace: "n", Detached: true, ManagedNamespace: test.managed, SameCluster: test.same}
		c, err := o.NewCluster(&rest.Config{Host: "https://x"})
		if err != nil || c.Namespace != test.namespace || c.Home != test.home {
			t.Errorf("%+v: %+v, %v", test, c, err)
		}
	}
}
