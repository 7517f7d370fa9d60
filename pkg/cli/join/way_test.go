// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// proxyTo returns a proxy that connects to one server alone, and counts the connections.
func proxyTo(server string, connects *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != server {
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
		// Hijack before responding: what the client sends right after the response is part of the connection, not of the request.
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
	})
}

// TestJoin_UsesProxy verifies that join connects to the hub as the agent will: through the proxy, if there is one. If the proxy has its own
// certificate authority, the agent trusts both.
func TestJoin_UsesProxy(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		hub, cluster, config, args := newJoining(t)
		var connects atomic.Int32
		proxy := httptest.NewUnstartedServer(proxyTo(hub.Listener.Addr().String(), &connects))
		var authority []byte
		if withTLS {
			var key []byte
			var err error
			authority, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(authority, key)
			if err != nil {
				t.Fatal(err)
			}
			proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
			proxy.StartTLS()
			if _, _, err := clitest.Run(t, config, append(slices.Clone(args), "--proxy-url", proxy.URL)...); err == nil {
				t.Error("a proxy that nobody trusts is used")
			}
			args = append(args, "--proxy-ca-file", fileWith(t, string(authority)))
		} else {
			proxy.Start()
		}
		defer proxy.Close()
		if _, stderr, err := clitest.Run(t, config, append(args, "--proxy-url", proxy.URL)...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		if connects.Load() == 0 || len(hub.Asked) == 0 {
			t.Errorf("the proxy was asked for %d connections, the hub for %q", connects.Load(), hub.Asked)
		}
		secret := &corev1.Secret{}
		cluster.As(clitest.AgentSecrets+registration.BootstrapSecret, secret)
		bootstrap, err := clientcmd.Load(secret.Data[registration.KeyKubeconfig])
		if err != nil || bootstrap.Clusters["hub"].ProxyURL != proxy.URL {
			t.Errorf("the agent's proxy is %q, %v", bootstrap.Clusters["hub"].ProxyURL, err)
			continue
		}
		trusted, err := cert.ParseCertsPEM(bootstrap.Clusters["hub"].CertificateAuthorityData)
		wanted, _ := cert.ParseCertsPEM(authority)
		if err != nil || len(trusted) != 1+len(wanted) || !trusted[0].Equal(hub.Certificate()) {
			t.Errorf("the agent trusts %d authorities: %v", len(trusted), err)
		}
	}
}
