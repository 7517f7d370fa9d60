// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package outer

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

// Reasons for which there is no answer, as conditions have them.
const (
	// ReasonUnreachable: there is no connection, or it has ended, or another server is there than the CA says.
	ReasonUnreachable = "Unreachable"
	// ReasonTooSlow: there was no answer, or not all of it, in RequestTimeout.
	ReasonTooSlow = "TooSlow"
	// ReasonTooLarge: the answer has more bytes than MaxAnswer or MaxMetadata, or more than MaxEntries or MaxMetadataEntries.
	ReasonTooLarge = "TooLarge"
	// ReasonNotAnAPIServer: the server has answered in another way than API servers do, such as by a redirect.
	ReasonNotAnAPIServer = "NotAnAPIServer"
)

// Error says why there is no answer of a cluster. Its text can be shown. It hides its cause, or clients would try again at once.
type Error struct {
	// Reason is one of the above.
	Reason  string
	message string
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Timeout says whether to ask again may help, as with a net.Error.
func (e *Error) Timeout() bool { return e.Reason == ReasonTooSlow }

// Temporary makes it a net.Error.
func (e *Error) Temporary() bool { return e.Timeout() }

const notAsAPIServersDo = "the cluster has answered, but not as an API server does"

// Explain is an error of a client of the cluster for a condition, an event or a log: one line of MaxMessage bytes at most, without
// control characters and without the credentials of the source. An error that has not gone through it must not be shown: the server
// may have written any part of it.
func (c *Cluster) Explain(err error) string {
	var time *time.ParseError
	switch {
	case err == nil:
		return ""
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err), errors.As(err, &time):
		// They quote the answer, some of them all of it.
		return notAsAPIServersDo
	}
	return clean(c.source.Redact(err.Error()))
}

// clean is what others wrote, on one line of MaxMessage bytes at most.
func clean(text string) string {
	// What is looked at is bounded, too.
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

// looksEnded is by what clients tell that a connection has ended.
var looksEnded = regexp.MustCompile(`(?i)GOAWAY|closed network connection|connection reset by peer|can't write HTTP request on broken connection`)

// noConnection is an error of the transport, of which the server has written a part, such as the names in its certificate.
func (g *guard) noConnection(err error) error {
	message := err.Error()
	// Otherwise clients try again, ten times: net/http has done so already where the connection had stood idle.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || looksEnded.MatchString(message) {
		message = "it has ended the connection"
	}
	return &Error{Reason: ReasonUnreachable, message: clean(g.redact("the cluster cannot be reached: " + message))}
}

// isReason is what reasons of Kubernetes look like.
var isReason = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

const (
	// maxFailure is how many bytes of an answer are read that says that a request has failed.
	maxFailure = 64 << 10
	// maxCauses is how many of its causes are kept, and maxDelay how many seconds it may ask to wait.
	maxCauses, maxDelay = 16, 60
)

// failure is an answer that says that a request has failed, with what an API server says of that, cleaned, and nothing else: clients
// make errors of it, which are logged and shown.
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

// ended says whose end it is that a request had: that of its caller, or ours, for the server was too slow.
func (g *guard) ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTooSlow) {
		return &Error{Reason: ReasonTooSlow, message: "the cluster has not answered within " + g.requestTimeout.String()}
	} else if cause != nil {
		return ctx.Err()
	}
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	return g.noConnection(err)
}
