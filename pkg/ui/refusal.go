// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonNoSession is the reason of a response to a browser without a valid session. The hub has no such reason, so the page can distinguish it from
// the hub's errors about its user.
const ReasonNoSession metav1.StatusReason = "NoSession"

// refusal is an error response. It contains nothing that the client has sent.
type refusal struct{ metav1.Status }

// reasons are the reasons that the hub would use.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadGateway:            metav1.StatusReasonInternalError,
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusUnauthorized:          ReasonNoSession,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: fmt.Sprintf(format, args...),
	}}
}

// write writes the response like the hub.
func (f *refusal) write(w http.ResponseWriter) { writeJSON(w, int(f.Code), f.Status) }

func writeJSON(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		code, data = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// setHeaders sets the headers of all responses. A browser that displays a response itself runs no scripts in it.
func setHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
	} {
		h.Set(name, value)
	}
}
