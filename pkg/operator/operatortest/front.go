// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Front is a proxy of a cluster that records the requests of an operator.
type Front struct {
	// Hangs, if set, blocks all responses until it is closed.
	Hangs chan struct{}
	// Lies, if set, responds in place of the cluster, which is truth.
	Lies func(w http.ResponseWriter, r *http.Request, truth http.Handler)

	lock sync.Mutex
	// asked are all requests except watches, and watches is the number of watches.
	asked   []string
	watches int
	// waiting is the number of requests without a response yet.
	waiting int
}

// Requests returns all requests except watches, as "METHOD path".
func (f *Front) Requests() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.asked)
}

// Watches returns the number of watch requests.
func (f *Front) Watches() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.watches
}

// Waiting returns the number of requests that wait because of Hangs.
func (f *Front) Waiting() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.waiting
}

// Start starts the front, and returns the kubeconfig of an admin for it.
func (f *Front) Start(t testing.TB, behind *rest.Config) []byte {
	t.Helper()
	server, err := url.Parse(behind.Host)
	if err != nil {
		t.Fatal(err)
	}
	through, err := rest.TransportFor(behind)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: through, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		r.Out.Header.Del("Authorization")
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.note(r)
		if f.hangs(r.Context()) {
			return
		}
		if f.Lies != nil {
			f.Lies(w, r, proxy)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	// The operator runs until after this has ended, and repeats requests when its connections are closed: if not all requests were canceled,
	// including those that arrive later, closing could block forever.
	ctx, cancel := context.WithCancel(context.Background())
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.StartTLS()
	t.Cleanup(func() { cancel(); s.CloseClientConnections(); s.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	source, err := Kubeconfig(&rest.Config{Host: s.URL, BearerToken: "of-the-front", TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func (f *Front) note(r *http.Request) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if r.URL.Query().Get("watch") == "" {
		f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	} else {
		f.watches++
	}
}

// hangs waits until Hangs is closed, and reports whether the request was canceled first.
func (f *Front) hangs(ctx context.Context) bool {
	if f.Hangs == nil {
		return false
	}
	wait := func(n int) {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.waiting += n
	}
	wait(1)
	defer wait(-1)
	select {
	case <-ctx.Done():
		return true
	case <-f.Hangs:
		return false
	}
}
