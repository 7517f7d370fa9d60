// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestProbe_ReportsAPIServerHealth(t *testing.T) {
	for name, c := range map[string]struct {
		live, healthz int
		want          string
	}{
		"alive":      {live: 200},
		"old":        {live: 404, healthz: 200},
		"failing":    {live: 500, want: "/livez returned 500: etcd failed"},
		"old, badly": {live: 404, healthz: 500, want: "/healthz returned 500"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				code := map[string]int{"/livez": c.live, "/healthz": c.healthz}[r.URL.Path]
				w.WriteHeader(code)
				_, _ = w.Write([]byte("etcd failed"))
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = probeLive(client.Discovery().RESTClient())(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			server.Close()
			if probeLive(client.Discovery().RESTClient())(t.Context()) == nil {
				t.Error("a server that is gone is alive")
			}
		})
	}
}
