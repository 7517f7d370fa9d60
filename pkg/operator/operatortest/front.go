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

// Front is before a cluster, and knows what an operator asks of it.
type Front struct {
	// Hangs, if there is one, has it answer nothing until it is closed.
	Hangs chan struct{}
	// Lies, if there is one, answers in place of the cluster, which is truth.
	Lies func(w http.ResponseWriter, r *http.Request, truth http.Handler)

	lock sync.Mutex
	// asked are all requests that are no watches, and watches how many are.
	asked   []string
	watches int
	// waiting is how many requests are not answered now.
	waiting int
}

// Requests are all that were made and are no watches, "METHOD path".
func (f *Front) Requests() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.asked)
}

// Watches is how many watches were asked for.
func (f *Front) Watches() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.watches
}

// Waiting is how many requests wait for an answer because of Hangs.
func (f *Front) Waiting() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.waiting
}

// Start returns the kubeconfig of an admin, by which the front is reached.
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
	// The operator goes on until after this has ended, and asks again when its connections are closed: without an end of all requests, also
	// of those that come after, it may be waited for without end.
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

// hangs waits for the end of Hangs, and says whether that of the request came first.
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
