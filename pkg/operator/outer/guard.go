// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package outer

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

// guard is between all clients of a cluster and the connections to it. What it gives back is bounded in size and time, and of the
// answers only those that an API server gives.
type guard struct {
	base http.RoundTripper
	// host is the only one that is asked.
	host   string
	redact func(string) string

	limits
	// watchBytes are those that may be read of all watches together.
	watchBytes *rate.Limiter
}

// limits are the constants of these names.
type limits struct {
	answer, entries           int
	metadata, metadataEntries int
	requestTimeout, watchIdle time.Duration
	large                     chan struct{}
}

var errTooSlow = errors.New("too slow")

// RoundTrip implements http.RoundTripper. It runs below what adds the credentials to a request, so it sees each of them.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" || !strings.EqualFold(request.URL.Host, g.host) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, &Error{Reason: ReasonNotAnAPIServer, message: "a request to another server than that of the kubeconfig is not sent"}
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

// isWatch also knows the paths of former times, which clients of today do not ask for, as no watch.
func isWatch(request *http.Request) bool {
	watch, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	return watch && request.Method == http.MethodGet
}

// isMetadata is whether metadata alone is asked for.
func isMetadata(request *http.Request) bool {
	return strings.Contains(request.Header.Get("Accept"), ";as=PartialObjectMetadata")
}

// isJSON is whether an answer says that it is JSON. If it says nothing, clients take it for that.
func isJSON(response *http.Response) bool {
	contentType := response.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && mediaType == runtime.ContentTypeJSON
}

// check takes what an API server answers, and changes in it what clients would do more with than is good.
func (g *guard) check(response *http.Response, body *body) error {
	// Clients would wait as long as the server says, and log what it warns of.
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
		return &Error{Reason: ReasonNotAnAPIServer, message: fmt.Sprintf("the cluster has answered with code %d, which leads to "+
			"another place, and is not followed: is it the URL of its API server?", code)}
	case code < http.StatusOK || code > http.StatusPartialContent:
		return &Error{Reason: ReasonNotAnAPIServer, message: fmt.Sprintf("the cluster has answered with code %d, which API servers do not", code)}
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if !isJSON(response) && mediaType != "text/plain" {
		return &Error{Reason: ReasonNotAnAPIServer, message: "the cluster has answered in another form than JSON, which was asked for"}
	}
	return nil
}

// replace gives a failed answer another body: what an API server says, or that it says nothing.
func replace(response *http.Response, body *body, status *metav1.Status) (err error) {
	_ = body.Close() // it was read as far as it is needed
	data, contentType := []byte("the cluster has not said why in the way of an API server"), "text/plain"
	if status != nil {
		contentType = runtime.ContentTypeJSON
		if data, err = json.Marshal(status); err != nil {
			return err
		}
	}
	response.Header.Set("Content-Type", contentType)
	response.Header.Del("Content-Length")
	response.ContentLength = int64(len(data))
	response.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}
