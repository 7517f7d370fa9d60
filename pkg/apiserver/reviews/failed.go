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

// retryAfter is after how many seconds a client is asked to try again.
const retryAfter = 1

// failures has the last failure of a review for one request.
type failures struct {
	last atomic.Pointer[apierrors.StatusError]
}

type failuresKey struct{}

// WithFailures answers a request that is refused because a review of it has failed: 503, or 504 if the front was slow, with Retry-After. The
// filters of the generic server say 401, 403 or 500 then, and the last of them with the error, in which is the front's address. Every
// other 503, and the 504 of a read, such as that of a slow etcd, gets a Retry-After, too. It has to be around all filters.
func WithFailures(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &failures{}
		r = r.WithContext(context.WithValue(r.Context(), failuresKey{}, f))
		handler.ServeHTTP(responsewriter.WrapForHTTP1Or2(&answering{ResponseWriter: w, request: r, failures: f, serializer: serializer}), r)
	})
}

// note keeps a failure for the answer, and returns what may be told of it. The client that has asked has logged the details.
func note(ctx context.Context, what string, err error) error {
	told := apierrors.NewServiceUnavailable("the hub's kube-apiserver did not answer " + what + ": try again later")
	if tookTooLong(err) {
		told = apierrors.NewTimeoutError("the hub's kube-apiserver took too long to answer "+what+": try again later", retryAfter)
	}
	told.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	if f, ok := ctx.Value(failuresKey{}).(*failures); ok {
		f.last.Store(told)
	}
	return told
}

func tookTooLong(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() || apierrors.IsTimeout(err)
}

// ReportFailedTokens returns an authenticator that tells a token that could not be reviewed from one that is wrong.
func ReportFailedTokens(asks authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := asks.AuthenticateRequest(r)
		if err != nil && notReviewed(err) {
			err = note(r.Context(), "who sends the request", err)
		}
		return response, ok, err
	})
}

// notReviewed is true of an error of the client of the front. What the front says of a wrong token is an error without a type.
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

// answering writes the answer of a request.
type answering struct {
	http.ResponseWriter
	request    *http.Request
	failures   *failures
	serializer runtime.NegotiatedSerializer
	// replaced says that the answer is another one.
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
		// A write that was not answered in time may have been done, and clients repeat what has a Retry-After by themselves.
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
