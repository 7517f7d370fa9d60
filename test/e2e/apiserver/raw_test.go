// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// rawClient sends requests unchanged.
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
