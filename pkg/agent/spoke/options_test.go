// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A managed cluster that is not trusted sends no request of the agent elsewhere, with its token least of all.
func TestClusters_SendTheAgentNowhereElse(t *testing.T) {
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
			if err == nil || !strings.Contains(err.Error(), "redirection") {
				t.Errorf("%d, %s: %v", code, what, err)
			}
		}
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}
