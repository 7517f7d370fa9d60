// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// maxQuestion is the largest size of an object that the page sends.
const maxQuestion = 64 << 10

// upstream sends requests to the hub as the user of the kubeconfig, or as the user whose token comes with the request.
type upstream struct {
	config    *rest.Config
	base      *url.URL
	transport http.RoundTripper
	// timeout is the time limit of the hub, except for watches.
	timeout time.Duration
	// watchFor is the largest duration of a watch, or 0 for the hub's limit.
	watchFor time.Duration

	mu sync.Mutex
	// user is the hub's name for the user of the kubeconfig, once it is known.
	user string
}

func newUpstream(config *rest.Config) (*upstream, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the way to the hub: %w", err)
	}
	// The transport has the user's credentials. It follows no redirects, which could send them to other servers.
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("the way to the hub: %w", err)
	}
	return &upstream{config: config, base: base, transport: transport, timeout: min(cmp.Or(config.Timeout, answerTimeout), answerTimeout)}, nil
}

// request converts a question to a request. It contains nothing of the browser's request but what the question has.
func (u *upstream) request(ctx context.Context, q *question) (*http.Request, error) {
	at := u.base.JoinPath(q.path)
	at.RawQuery = u.bounded(q).Encode()
	var body io.Reader
	if q.body != nil {
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, at.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", q.accept)
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// pass sends a question to the hub and streams its response.
func (u *upstream) pass(w http.ResponseWriter, r *http.Request, q *question) *refusal {
	ctx := r.Context()
	if within := u.within(q); within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	request, err := u.request(ctx, q)
	if err != nil {
		return refuse(http.StatusBadRequest, "the request cannot be passed on")
	}
	response, err := u.transport.RoundTrip(request)
	if err != nil {
		return u.unreachable(err)
	}
	defer func() { _ = response.Body.Close() }()
	contentType, refused := u.checkResponse(response, q)
	if refused != nil {
		return refused
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(response.StatusCode)
	if q.states && response.StatusCode == http.StatusOK {
		withStates(w, response.Body, q)
	} else {
		copyAll(w, response.Body)
	}
	return nil
}

// within returns the time limit for the hub's whole response.
func (u *upstream) within(q *question) time.Duration {
	switch {
	case !q.watch:
		return u.timeout
	case u.watchFor > 0:
		return u.watchFor + u.timeout // the hub ends it earlier
	}
	return 0
}

// bounded returns the parameters of a question, with a limit for the duration of a watch.
func (u *upstream) bounded(q *question) url.Values {
	if !q.watch || u.watchFor == 0 {
		return q.query
	}
	values := maps.Clone(q.query)
	most := int64(u.watchFor.Seconds())
	if asked, err := strconv.ParseInt(values.Get("timeoutSeconds"), 10, 64); err != nil || asked <= 0 || asked > most {
		values.Set("timeoutSeconds", strconv.FormatInt(most, 10))
	}
	return values
}

// unreachable returns why the hub does not respond, without parameters and credentials.
func (u *upstream) unreachable(err error) *refusal {
	if parts := (*url.Error)(nil); errors.As(err, &parts) {
		err = parts.Err // the other part is the address
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return refuse(http.StatusGatewayTimeout, "the hub %s has not answered within %s", withoutPassword(u.base), u.timeout)
	}
	return refuse(http.StatusServiceUnavailable, "the hub %s cannot be reached: %v", withoutPassword(u.base), err)
}

// checkResponse allows JSON, and plain text if the question expects it. A gateway in front of the hub may return anything.
func (u *upstream) checkResponse(response *http.Response, q *question) (contentType string, refused *refusal) {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	good := response.StatusCode == http.StatusOK || response.StatusCode == http.StatusCreated || response.StatusCode >= 400
	switch {
	case good && err == nil && kind == "application/json":
		return kind, nil
	case good && err == nil && kind == "text/plain" && q.text:
		return "text/plain; charset=utf-8", nil
	case good && response.StatusCode >= 400:
		return "", refuse(response.StatusCode, "the hub %s says only %s", withoutPassword(u.base), http.StatusText(response.StatusCode)).fromHub()
	}
	return "", refuse(http.StatusBadGateway, "expected JSON of the hub %s, and got %q with status %d: something between answers in its place",
		withoutPassword(u.base), kind, response.StatusCode)
}

// fromHub changes a reason that only this server's sessions may have.
func (f *refusal) fromHub() *refusal {
	if f.Reason == ReasonNoSession {
		f.Reason = metav1.StatusReasonUnauthorized
	}
	return f
}

// copyAll passes on each part immediately. A browser that does not receive it for some time is disconnected.
func copyAll(w http.ResponseWriter, from io.Reader) {
	control := http.NewResponseController(w)
	if control.Flush() != nil { // a watch may have no events for long
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, failed := w.Write(buffer[:n]); failed != nil || control.Flush() != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
			return
		}
		if err != nil {
			// The response is incomplete, and the browser must not consider it complete.
			panic(http.ErrAbortHandler)
		}
	}
}

// readQuestion reads the object that the page sends, which must have the one kind that its path is for.
func readQuestion(w http.ResponseWriter, r *http.Request, q *question, timeout time.Duration) ([]byte, *refusal) {
	if q.method != http.MethodPost {
		return nil, nil
	}
	data, refused := readJSON(w, r, maxQuestion, timeout)
	if refused != nil {
		return nil, refused
	}
	var object struct {
		metav1.TypeMeta `json:",inline"`
	}
	if err := json.Unmarshal(data, &object); err != nil || object.APIVersion != q.apiVersion || object.Kind != q.kind {
		return nil, refuse(http.StatusBadRequest, "expected a %s of %s", q.kind, q.apiVersion)
	}
	return data, nil
}

// readJSON reads a body of limited size in limited time. Forms of other sites cannot send this type.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration) ([]byte, *refusal) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "expected the Content-Type application/json")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(timeout))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "expected at most %d bytes", limit)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body has not come within %s", timeout)
	}
	// Otherwise a watch would end with the deadline.
	_ = control.SetReadDeadline(time.Time{})
	return data, nil
}

// userName returns the hub's name for the user, or "" if the hub does not return it. The name of the kubeconfig's user is cached.
func (u *upstream) userName(ctx context.Context, token string) string {
	if token != "" {
		return u.whoAmI(ctx, token)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.user == "" {
		u.user = u.whoAmI(ctx, "")
	}
	return u.user
}

func (u *upstream) whoAmI(ctx context.Context, token string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body, err := json.Marshal(&authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"}})
	if err != nil {
		return ""
	}
	request, err := u.request(ctx, &question{method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: body,
		accept: "application/json", token: token})
	if err != nil {
		return ""
	}
	response, err := u.transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	var review authenticationv1.SelfSubjectReview
	if response.StatusCode != http.StatusCreated || json.NewDecoder(io.LimitReader(response.Body, maxQuestion)).Decode(&review) != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
