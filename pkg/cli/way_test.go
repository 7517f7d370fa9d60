// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// join tries the way that the agent will take: by the proxy, if there is one.
func TestJoin_GoesByTheProxy(t *testing.T) {
	hub, cluster, config, args := newJoining(t)
	var connects atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != hub.Listener.Addr().String() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		connects.Add(1)
		to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer to.Close()
		// Before the answer: what the client sends right after it is a part of the connection, not of the request.
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
	}))
	defer proxy.Close()
	if _, _, err := run(t, config, append(args, "--proxy-url", proxy.URL)...); err != nil {
		t.Fatal(err)
	}
	if connects.Load() == 0 || len(hub.asked) == 0 {
		t.Errorf("the proxy was asked for %d connections, the hub for %q", connects.Load(), hub.asked)
	}
	secret := &corev1.Secret{}
	cluster.as(agentSecrets+registration.BootstrapSecret, secret)
	bootstrap, err := clientcmd.Load(secret.Data[registration.KeyKubeconfig])
	if err != nil || bootstrap.Clusters["hub"].ProxyURL != proxy.URL {
		t.Errorf("the agent's proxy is %q, %v", bootstrap.Clusters["hub"].ProxyURL, err)
	}
}
