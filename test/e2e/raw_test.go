// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// rawClient sends requests as they are.
type rawClient struct{ rest.Interface }

func (c rawClient) do(t *testing.T, r badRequest) (code int, answer string) {
	t.Helper()
	if r.verb == "" {
		r.verb = http.MethodPost
	}
	if r.path == "" {
		r.path = clustersPath
	}
	target := c.Get().AbsPath("/").URL()
	request, err := http.NewRequestWithContext(t.Context(), r.verb, target.Scheme+"://"+target.Host+r.path+"?"+r.query, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	request.Header.Set("Content-Type", r.contentType)
	if r.accept == "" {
		r.accept = "application/json"
	}
	request.Header.Set("Accept", r.accept)
	response, err := c.Interface.(*rest.RESTClient).Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// synced is a buffer that can be read while it is written.
type synced struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
