// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Lie is the response of a hostile cluster in place of the real one, which is truth.
type Lie func(w http.ResponseWriter, r *http.Request, truth http.Handler)

// Marker is part of the texts of hostile clusters: it must not appear on the management cluster except in conditions.
const Marker = "x-hostile-x"

// Kinds of requests that lies are about.
func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }
func isToken(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/token") }

// Only lies to some requests: the others are passed to the cluster.
func Only(which func(r *http.Request) bool, lie Lie) Lie {
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
		if which(r) {
			lie(w, r, truth)
		} else {
			truth.ServeHTTP(w, r)
		}
	}
}

// ToTokens lies to token requests.
func ToTokens(lie Lie) Lie { return Only(isToken, lie) }

// ToWatches lies to watches.
func ToWatches(lie Lie) Lie { return Only(isWatch, lie) }

// ToOthers lies to all other requests.
func ToOthers(lie Lie) Lie {
	return Only(func(r *http.Request) bool { return !isWatch(r) && !isToken(r) }, lie)
}

// Respond returns a fixed response in JSON.
func Respond(code int, text string) Lie {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// RespondForever writes first, and then the results of what until the client closes the connection. what gets a counter.
func RespondForever(first string, what func(r *http.Request, i int) string) Lie {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, first)
		for i := 0; err == nil && r.Context().Err() == nil; i++ {
			_, err = io.WriteString(w, what(r, i))
		}
	}
}

// Hang sends no response until enough is closed, and closes the connection then.
func Hang(enough <-chan struct{}) Lie {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-enough:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	}
}

// Changes changes the response of the cluster, if it is an object and not a failure.
func Changes(change func(object map[string]any)) Lie {
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
		if isWatch(r) {
			truth.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		real := httptest.NewRecorder()
		truth.ServeHTTP(real, r)
		data, object := real.Body.Bytes(), map[string]any{}
		if real.Code < http.StatusBadRequest && json.Unmarshal(data, &object) == nil {
			change(object)
			if changed, err := json.Marshal(object); err == nil {
				data = changed
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(real.Code)
		_, _ = w.Write(data)
	}
}

// Event returns an event of a watch.
func Event(kind, namespace, name string, i int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":%q,"name":%q,"uid":"u-%d","resourceVersion":"%d"}}}`+"\n",
		kind, namespace, name, i, 1_000_000+i)
}

// Heap measures the memory of the process until the test ends. The function that it returns returns the maximum growth since the start, in MiB.
func Heap(t testing.TB) (most func() uint64) {
	t.Helper()
	used := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc >> 20
	}
	// The environment of tests lets more garbage accumulate than programs do.
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	before := used()
	var peak atomic.Uint64
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
				peak.Store(max(peak.Load(), used()))
			}
		}
	}()
	return func() uint64 { return max(peak.Load(), before) - before }
}
