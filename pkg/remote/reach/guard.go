// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// guard is between all clients of a cluster and its connections. It limits responses in size and time, and passes only responses that an API server
// would send.
type guard struct {
	base http.RoundTripper
	// host is the only host that gets requests.
	host   string
	redact func(string) string

	limits
	// watchBytes limits the rate of bytes of all watches together.
	watchBytes *rate.Limiter
}

// limits has the values of the constants with these names.
type limits struct {
	answer, entries           int
	metadata, metadataEntries int
	requestTimeout, watchIdle time.Duration
	large                     chan struct{}
}

var errTooSlow = errors.New("too slow")

// RoundTrip implements http.RoundTripper. It runs below the layer that adds credentials to a request, so it sees every request.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" || !strings.EqualFold(request.URL.Host, g.host) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, &Error{Reason: ReasonNotAnAPIServer, message: "a request to another server than the one of the kubeconfig is not sent"}
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	tooSlow := time.AfterFunc(g.requestTimeout, func() { cancel(errTooSlow) })
	end := func() {
		tooSlow.Stop()
		cancel(nil)
	}
	response, err := g.base.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = g.ended(ctx, err)
		end()
		return nil, err
	}
	body := &body{ReadCloser: response.Body, guard: g, ctx: ctx, end: end, max: g.answer, most: g.entries, plain: !isJSON(response)}
	if isMetadata(request) {
		body.max, body.most = g.metadata, g.metadataEntries
	}
	if err := g.check(response, body); err != nil {
		err = g.ended(ctx, err)
		_ = body.Close()
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		if isWatch(request) {
			body.watch(tooSlow)
		}
		response.Body = body
	}
	return response, nil
}

// isWatch treats the watch paths of old API versions, which current clients do not use, as no watch.
func isWatch(request *http.Request) bool {
	watch, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	return watch && request.Method == http.MethodGet
}

// isMetadata reports whether a request is for metadata only.
func isMetadata(request *http.Request) bool {
	return strings.Contains(request.Header.Get("Accept"), ";as=PartialObjectMetadata")
}

// isJSON reports whether a response is declared as JSON. Clients take a response without a content type as JSON.
func isJSON(response *http.Response) bool {
	contentType := response.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && mediaType == runtime.ContentTypeJSON
}

// check accepts responses of an API server, and removes headers that would have unwanted effects in clients.
func (g *guard) check(response *http.Response, body *body) error {
	// Clients would wait as long as the server asks for, and log its warnings.
	response.Header.Del("Retry-After")
	response.Header.Del("Warning")
	switch code := response.StatusCode; {
	case code >= http.StatusBadRequest && code < 600:
		status, err := g.failure(response, body)
		if err != nil {
			return err
		}
		return replace(response, body, status)
	case code >= 300 && code < http.StatusBadRequest:
		return &Error{Reason: ReasonNotAnAPIServer, message: fmt.Sprintf("the cluster has responded with code %d, a redirect, "+
			"which is not followed: is it the URL of its API server?", code)}
	case code < http.StatusOK || code > http.StatusPartialContent:
		return &Error{Reason: ReasonNotAnAPIServer, message: fmt.Sprintf("the cluster has responded with code %d, which API servers do not use", code)}
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if !isJSON(response) && mediaType != "text/plain" {
		return &Error{Reason: ReasonNotAnAPIServer, message: "the cluster has responded in another format than the requested JSON"}
	}
	return nil
}

// replace replaces the body of a failure response with the status of an API server, or with a text that it sent none.
func replace(response *http.Response, body *body, status *metav1.Status) (err error) {
	_ = body.Close() // it was read as far as needed
	data, contentType := []byte("the cluster has not given a reason as an API server does"), "text/plain"
	if status != nil {
		contentType = runtime.ContentTypeJSON
		data, err = json.Marshal(status)
		if err != nil {
			return err
		}
	}
	response.Header.Set("Content-Type", contentType)
	response.Header.Del("Content-Length")
	response.ContentLength = int64(len(data))
	response.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}
