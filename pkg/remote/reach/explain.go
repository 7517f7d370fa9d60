// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// Reasons why a cluster did not respond, for conditions.
const (
	// ReasonUnreachable: the connection failed or was closed, or the server's certificate is not signed by the CA.
	ReasonUnreachable = "Unreachable"
	// ReasonTooSlow: the response was not complete within RequestTimeout.
	ReasonTooSlow = "TooSlow"
	// ReasonTooLarge: the response has more bytes than MaxAnswer or MaxMetadata, or more entries than MaxEntries or MaxMetadataEntries.
	ReasonTooLarge = "TooLarge"
	// ReasonNotAnAPIServer: the server responded differently than API servers do, such as with a redirect.
	ReasonNotAnAPIServer = "NotAnAPIServer"
)

// Error reports why a cluster did not respond. Its text can be shown. It hides its cause, since clients would otherwise retry at once.
type Error struct {
	// Reason is one of the reasons above.
	Reason  string
	message string
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Timeout reports whether a retry may help, as with a net.Error.
func (e *Error) Timeout() bool { return e.Reason == ReasonTooSlow }

// Temporary implements net.Error.
func (e *Error) Temporary() bool { return e.Timeout() }

const notAsAPIServersDo = "the cluster has responded, but not as an API server does"

// Explain formats an error of a client of the cluster for a condition, an event or a log: one line of MaxMessage bytes at most, without control
// characters and without the credentials of the source. Errors that were not passed through it must not be shown: the server may have written any
// part of them.
func (c *Connection) Explain(err error) string {
	var time *time.ParseError
	switch {
	case err == nil:
		return ""
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err), errors.As(err, &time):
		// They quote the response, some of them completely.
		return notAsAPIServersDo
	}
	return clean(c.source.Redact(err.Error()))
}

// clean returns a text that others wrote on one line of MaxMessage bytes at most.
func clean(text string) string {
	// The input is bounded, too.
	if len(text) > 8*MaxMessage {
		text = text[:8*MaxMessage]
	}
	text = command.Printable(strings.Join(strings.Fields(text), " "))
	if len(text) <= MaxMessage {
		return text
	}
	const more = "…"
	end := MaxMessage - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// closedConnection matches errors that clients return for a closed connection.
var closedConnection = regexp.MustCompile(`(?i)GOAWAY|closed network connection|connection reset by peer|can't write HTTP request on broken connection`)

// noConnection returns an error of the transport. The server may have written a part of it, such as the names in its certificate.
func (g *guard) noConnection(err error) error {
	message := err.Error()
	// Otherwise clients retry ten times: net/http has already done so for idle connections.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || closedConnection.MatchString(message) {
		message = "it has ended the connection"
	}
	return &Error{Reason: ReasonUnreachable, message: clean(g.redact("the cluster cannot be reached: " + message))}
}

// isReason matches the form of Kubernetes' reasons.
var isReason = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

const (
	// maxFailure is the maximum number of bytes that are read of a failure response.
	maxFailure = 64 << 10
	// maxCauses is the maximum number of its causes that are retained, and maxDelay the longest delay in seconds that it may ask for.
	maxCauses, maxDelay = 16, 60
)

// failure parses a failure response, and returns only what an API server would say, cleaned: clients make errors of it, which are logged and shown.
func (g *guard) failure(response *http.Response, body io.Reader) (*metav1.Status, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxFailure))
	if err != nil {
		return nil, err
	}
	said := &metav1.Status{}
	if !isJSON(response) || json.Unmarshal(data, said) != nil || said.Kind != "Status" || said.Status != metav1.StatusFailure {
		return nil, nil
	}
	shown := func(text string) string { return clean(g.redact(text)) }
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: shown(said.Message), Code: int32(response.StatusCode),
	}
	if isReason.MatchString(string(said.Reason)) {
		status.Reason = said.Reason
	}
	if said.Details == nil {
		return status, nil
	}
	status.Details = &metav1.StatusDetails{
		Name: shown(said.Details.Name), Group: shown(said.Details.Group), Kind: shown(said.Details.Kind),
		UID: types.UID(shown(string(said.Details.UID))), RetryAfterSeconds: min(max(said.Details.RetryAfterSeconds, 0), maxDelay),
	}
	for _, cause := range said.Details.Causes[:min(len(said.Details.Causes), maxCauses)] {
		if cause.Type != "" && !isReason.MatchString(string(cause.Type)) {
			continue
		}
		status.Details.Causes = append(status.Details.Causes,
			metav1.StatusCause{Type: cause.Type, Message: shown(cause.Message), Field: shown(cause.Field)})
	}
	return status, nil
}

// ended returns the error of an ended request: canceled by its caller, or by us because the server was too slow.
func (g *guard) ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTooSlow) {
		return &Error{Reason: ReasonTooSlow, message: "the cluster has not responded within " + g.requestTimeout.String()}
	} else if cause != nil {
		return ctx.Err()
	}
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	return g.noConnection(err)
}
