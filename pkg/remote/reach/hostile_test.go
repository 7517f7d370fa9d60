// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/test/await"
)

const grantedToken = "granted-granted-granted-granted"

// TestRedirect_IsNotFollowed by any client, so no other server gets the admin's token, and no other path is read.
func TestRedirect_IsNotFollowed(t *testing.T) {
	thief := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %q", r.Header.Get("Authorization"))
	})
	for _, code := range []int{300, 301, 302, 303, 304, 307, 308, 399} {
		for name, location := range map[string]string{"elsewhere": thief.URL, "on the same server": "/elsewhere"} {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					t.Error("it was followed")
				}
				w.Header().Set("Location", location)
				w.WriteHeader(code)
			})
			c := connect(t, s)
			for way, ask := range ways(t, c) {
				if err := ask(t.Context()); err == nil || !strings.Contains(shown(t, c, err), fmt.Sprintf("code %d", code)) {
					t.Errorf("%d %s, %s: %v", code, name, way, err)
				}
			}
			// Nor by a client of net/http, which follows redirects itself.
			plain, err := rest.HTTPClientFor(c.Config())
			if err != nil {
				t.Fatal(err)
			}
			if response, err := plain.Get(s.URL + "/version"); err == nil {
				_ = response.Body.Close()
				t.Errorf("%d %s: an answer of %s", code, name, response.Status)
			}
		}
	}
}

// TestAnotherServer_GetsNoRequests, even with a modified configuration, and a server that the CA does not verify gets no request.
func TestAnotherServer_GetsNoRequests(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := connect(t, s)
	plain, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("another server was asked") })
	for _, url := range []string{other.URL, strings.Replace(s.URL, "https://", "http://", 1), strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
		if response, err := plain.Get(url); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s was asked", url)
		}
	}

	impostor := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a server that is not the CA's was asked") })
	source, err := mint.Parse(bytes.Replace(s.kubeconfig(", tls-server-name: not-in-the-certificate.example"), []byte(s.URL), []byte(impostor.URL), 1))
	if err != nil {
		t.Fatal(err)
	}
	c, err = New(source, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for way, ask := range ways(t, c) {
		if err := ask(t.Context()); err == nil || !strings.Contains(shown(t, c, err), "certificate") {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// endless writes until the client closes the connection.
func endless(w io.Writer, what string) {
	chunk := []byte(strings.Repeat(what, 1+64<<10/len(what)))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// TestResponses_AreBounded in bytes, also after decompression, and in the number of decoded values.
func TestResponses_AreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"a text without end": {func(w http.ResponseWriter) { endless(w, `{"metadata": {"name": "`) }, ReasonTooLarge},
		"spaces without end": {func(w http.ResponseWriter) { endless(w, ` `) }, ReasonTooLarge},
		"entries":            {func(w http.ResponseWriter) { endless(w, `{"items":[`+strings.Repeat(`{},`, 2*smallEntries)) }, ReasonTooLarge},
		"depth":              {func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat(`[`, 2*smallEntries)) }, ReasonTooLarge},
		"entries behind quotes": {func(w http.ResponseWriter) {
			endless(w, `{"a":"\\\"\\","items":[`+strings.Repeat(`0,`, 2*smallEntries))
		}, ReasonTooLarge},
		"plain text": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/plain"); endless(w, "x") }, ReasonTooLarge},
		"compressed": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			endless(z, `                `)
		}, ReasonTooLarge},
		"protobuf": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf") }, ReasonNotAnAPIServer},
		"CBOR":     {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/cbor") }, ReasonNotAnAPIServer},
		"HTML":     {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") }, ReasonNotAnAPIServer},
		"headers": {func(w http.ResponseWriter) {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1<<10))
			}
		}, ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				test.answer(w)
			})).small()
			for way, ask := range ways(t, c) {
				err := ask(t.Context())
				if text := shown(t, c, err); err == nil || reasonOf(err) != test.want && way != "token" && way != "discovery" {
					t.Errorf("%s: %s, want %s", way, text, test.want)
				}
			}
		})
	}
}

// TestLimits_HaveDocumentedValues: the other tests use smaller limits.
func TestLimits_HaveDocumentedValues(t *testing.T) {
	g := connect(t, serve(t, func(http.ResponseWriter, *http.Request) {})).config.Transport.(*guard)
	if g.limits != (limits{10 << 20, 100_000, 512 << 10, 10_000, 30 * time.Second, 15 * time.Minute, large}) {
		t.Errorf("%+v", g.limits)
	}
	if cap(large) != 4 || largeAnswer != 1<<20 {
		t.Errorf("%d answers of more than %d bytes are read at one time", cap(large), largeAnswer)
	}
}

// TestSlowServers_TimeOut: servers that never respond, that never complete a response, and that ask to wait.
func TestSlowServers_TimeOut(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"never": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drip": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		},
		"a failure, slowly": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, serve(t, answer)).impatient(200*time.Millisecond, time.Hour)
			for way, ask := range ways(t, c) {
				err := ask(t.Context())
				if text := shown(t, c, err); err == nil || !strings.Contains(text, "not responded within 200ms") {
					t.Errorf("%s: %s", way, text)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(io.ErrClosedPipe)
			if err := ways(t, c)["get"](ctx); err == nil || reasonOf(err) != "" {
				t.Errorf("the end of the caller is said to be the server's: %v", err)
			}
		})
	}
	t.Run("asks to wait", func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			status := apierrors.NewTooManyRequests("wait", 1_000_000).Status()
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			_ = json.NewEncoder(w).Encode(&status)
		})
		c := connect(t, s)
		all := ways(t, c)
		for way, ask := range all {
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			err := ask(ctx)
			if text := shown(t, c, err); ctx.Err() != nil || !strings.Contains(text, "wait") && !strings.Contains(text, "try again later") {
				t.Errorf("%s: %s", way, text)
			}
			if seconds, wait := apierrors.SuggestsClientDelay(err); wait && seconds > maxDelay {
				t.Errorf("%s: a client should wait for %d seconds", way, seconds)
			}
		}
		if s.asked() != len(all) {
			t.Errorf("it was asked %d times, not %d", s.asked(), len(all))
		}
	})
}

// TestExplain_ServerTextIsOneLine, whatever they send, and without the secrets that they know.
func TestExplain_ServerTextIsOneLine(t *testing.T) {
	said := "Bearer " + adminToken + "\r\n\x1b[2J\u202e\u009b" + strings.Repeat("long ", 1<<20)
	status := func(code int, status metav1.Status) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Warning", `299 - "`+adminToken+`"`)
			w.WriteHeader(code)
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			_ = json.NewEncoder(w).Encode(status)
		}
	}
	text := func(contentType string, code int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	short := said[:200]
	for name, answer := range map[string]func(http.ResponseWriter){
		"a long status":        status(403, metav1.Status{Status: metav1.StatusFailure, Message: said}),
		"a status":             status(403, metav1.Status{Status: metav1.StatusFailure, Message: short, Reason: metav1.StatusReason(short)}),
		"causes":               status(422, metav1.Status{Status: metav1.StatusFailure, Reason: "Invalid", Details: &metav1.StatusDetails{Name: short, Kind: short, Group: short, Causes: []metav1.StatusCause{{Type: "a", Message: short, Field: short}, {Type: metav1.CauseType(short)}}}}),
		"a good status":        status(200, metav1.Status{Status: metav1.StatusSuccess, Message: short}),
		"a failure with 200":   status(200, metav1.Status{Status: metav1.StatusFailure, Message: short}),
		"a success with 500":   status(500, metav1.Status{Status: metav1.StatusSuccess, Message: short}),
		"a code of its own":    status(500, metav1.Status{Status: metav1.StatusFailure, Code: 1 << 30, Message: short}),
		"text":                 text("text/plain", 500, short),
		"HTML":                 text("text/html", 500, short),
		"a type that is none":  text(short[:20]+"/"+adminToken, 500, short),
		"no JSON":              text("application/json", 200, short),
		"no kind":              text("application/json", 200, `{"status": {"token": "`+grantedToken+`"}, "x": "`+adminToken+`"}`),
		"half a token":         text("application/json", 200, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"`+grantedToken),
		"a token of a number":  text("application/json", 200, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":["`+grantedToken+`"]}}`),
		"a time that is none":  text("application/json", 200, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"x","expirationTimestamp":"`+grantedToken+`"}}`),
		"a kind that is none":  text("application/json", 200, `{"kind":"`+grantedToken+`","apiVersion":"`+adminToken+`"}`),
		"a status of a number": text("application/json", 500, `{"kind":"Status","apiVersion":"v1","status":{"token":"`+grantedToken+`"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			for way, ask := range ways(t, c) {
				err := ask(t.Context())
				_ = shown(t, c, err)
				// Clients log failure responses on their own.
				if status, ok := err.(apierrors.APIStatus); ok && status.Status().Code >= 400 && c.Explain(err) != err.Error() {
					t.Errorf("%s: an error is not clean: %q", way, err)
				}
				if way == "token" && err != nil && c.Explain(err) != err.Error() {
					t.Errorf("an error of Token is not clean: %q", err)
				}
				if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
					t.Errorf("%s: a server of which no such code has come is believed: %v", way, err)
				}
			}
		})
	}
}

// TestExplain_PreservesAPIServerErrors, since conditions must report what is missing, and programs evaluate the reason.
func TestExplain_PreservesAPIServerErrors(t *testing.T) {
	const said = `serviceaccounts "x" is forbidden: User "admin" cannot create resource "serviceaccounts/token" in API group "" in the namespace "n"`
	c := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := apierrors.NewNotFound(metav1.Unversioned.WithResource("x").GroupResource(), "y").Status()
		if r.Method == http.MethodPost {
			status = metav1.Status{TypeMeta: status.TypeMeta, Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: said}
		}
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}))
	all := ways(t, c)
	if err := all["get"](t.Context()); !apierrors.IsNotFound(err) || c.Explain(err) != `x "y" not found` {
		t.Error(err)
	}
	if err := all["write"](t.Context()); !apierrors.IsForbidden(err) || c.Explain(err) != said {
		t.Error(err)
	}
	if err := all["token"](t.Context()); err == nil || err.Error() != said {
		t.Error(err)
	}
}
