// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// retryAfter is the number of seconds after which clients should retry.
const retryAfter = 1

// failures has the last failure of a review for one request.
type failures struct {
	last atomic.Pointer[apierrors.StatusError]
}

type failuresKey struct{}

// WithFailures changes the response to a request that is rejected because a review of it has failed to 503, or to 504 if the front was slow, with
// Retry-After. The filters of the generic server return 401, 403 or 500 for it, and the last of these with the error, which contains the front's
// address. Every other 503, and the 504 of a read, such as that of a slow etcd, gets a Retry-After, too. It must be around all filters.
func WithFailures(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &failures{}
		r = r.WithContext(context.WithValue(r.Context(), failuresKey{}, f))
		handler.ServeHTTP(responsewriter.WrapForHTTP1Or2(&answering{ResponseWriter: w, request: r, failures: f, serializer: serializer}), r)
	})
}

// note records a failure for the response, and returns an error without details. The client that sent the review has logged them.
func note(ctx context.Context, what string, err error) error {
	unavailable := apierrors.NewServiceUnavailable("the hub's kube-apiserver did not answer " + what + ": try again later")
	if tookTooLong(err) {
		unavailable = apierrors.NewTimeoutError("the hub's kube-apiserver took too long to answer "+what+": try again later", retryAfter)
	}
	unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	if f, ok := ctx.Value(failuresKey{}).(*failures); ok {
		f.last.Store(unavailable)
	}
	return unavailable
}

func tookTooLong(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() || apierrors.IsTimeout(err)
}

// ReportFailedTokens returns an authenticator that distinguishes a token that could not be reviewed from one that is invalid.
func ReportFailedTokens(asks authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := asks.AuthenticateRequest(r)
		if err != nil && notReviewed(err) {
			err = note(r.Context(), "who sends the request", err)
		}
		return response, ok, err
	})
}

// notReviewed reports whether an error comes from the client of the front. The front's error about an invalid token has no type.
func notReviewed(err error) bool {
	if all, ok := err.(utilerrors.Aggregate); ok { //nolint:errorlint // It has no Unwrap.
		for _, one := range all.Errors() {
			if notReviewed(one) {
				return true
			}
		}
		return false
	}
	var status apierrors.APIStatus
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// answering writes the response of a request.
type answering struct {
	http.ResponseWriter
	request    *http.Request
	failures   *failures
	serializer runtime.NegotiatedSerializer
	// replaced reports whether the response was replaced.
	replaced bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answering) WriteHeader(code int) {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError:
		if failed := a.failures.last.Load(); failed != nil && !a.replaced {
			a.replaced = true
			a.Header().Del("Content-Length")
			responsewriters.ErrorNegotiated(failed, a.serializer, schema.GroupVersion{}, a.ResponseWriter, a.request)
			return
		}
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// A write that timed out may have been done, and clients repeat requests with a Retry-After automatically.
		unknown := code == http.StatusGatewayTimeout && a.request.Method != http.MethodGet
		if a.Header().Get("Retry-After") == "" && !unknown {
			a.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
	}
	if !a.replaced {
		a.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (a *answering) Write(p []byte) (int, error) {
	if a.replaced {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}
