// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
)

// InProcess serves requests with a handler, without a network.
type InProcess struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper. It encodes the request as for a network, so that the server gets the same data.
func (p InProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	var wire bytes.Buffer
	if err := request.Write(&wire); err != nil {
		return nil, err
	}
	received, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		return nil, err
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		var w *httptest.ResponseRecorder
		defer func() {
			if r := recover(); r != nil && r != http.ErrAbortHandler {
				panic(r)
			}
			answered <- w
		}()
		recorder := httptest.NewRecorder()
		p.Handler.ServeHTTP(recorder, received.WithContext(request.Context()))
		w = recorder
	}()
	select {
	case w := <-answered:
		if w == nil { // it was cut off
			return nil, io.ErrUnexpectedEOF
		}
		response := w.Result()
		response.Request = request
		return response, nil
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}
