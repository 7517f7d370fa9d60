// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/test/leak"
)

// TestRequests_LimitIsSharedByClients, so that more clients do not send more requests to a cluster.
func TestRequests_LimitIsSharedByClients(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	source, err := mint.Parse(s.kubeconfig(""))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(source, Options{QPS: 1e-6, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := ways(t, c)
	delete(all, "discovery") // it takes no context
	for _, ask := range all {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_ = ask(ctx)
	}
	if s.asked() != 1 {
		t.Errorf("%d requests were made, not 1", s.asked())
	}
}

// TestProxy_IsOfSource, and no error contains its password.
func TestProxy_IsOfSource(t *testing.T) {
	const password = "swordfish-swordfish"
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"gitVersion": "v1"}`)
	})
	var connected atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+password))
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != want || r.Header.Get("Authorization") != "" {
			t.Errorf("the proxy is asked to %s, with %v", r.Method, r.Header)
			return
		}
		upstream, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer upstream.Close()
		connected.Add(1)
		client, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(upstream, client) }()
		_, _ = io.Copy(client, upstream)
	}))
	defer proxy.Close()
	url := strings.Replace(proxy.URL, "http://", "http://u:"+password+"@", 1)
	source, err := mint.Parse(s.kubeconfig(", proxy-url: '" + url + "'"))
	if err != nil {
		t.Fatal(err)
	}
	through := func() (*Connection, error) {
		c, err := New(source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c, ways(t, c)["discovery"](t.Context())
	}
	c, err := through()
	if err != nil || connected.Load() != 1 {
		t.Errorf("%d connections through the proxy: %v", connected.Load(), err)
	}
	c.Close()
	s.CloseClientConnections()
	proxy.Close()
	c, err = through()
	if err == nil || len(leak.Secrets{"password": []byte(password)}.Find([]byte(err.Error()+c.Explain(err)))) > 0 {
		t.Errorf("without the proxy: %v", err)
	}
}

// FuzzExplain: any text of others becomes one line that can be shown.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b[2J", adminToken, strings.Repeat("ü", MaxMessage), "\xff\xfe" + strings.Repeat("\x00", MaxMessage)} {
		f.Add(seed)
	}
	s := &server{Server: httptest.NewTLSServer(http.NotFoundHandler())}
	f.Cleanup(s.Close)
	source, err := mint.Parse(s.kubeconfig(""))
	if err != nil {
		f.Fatal(err)
	}
	c, err := New(source, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) { _ = shown(t, c, errors.New(text)) })
}
