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

// Lie is how a hostile cluster answers in place of the real one, which is truth.
type Lie func(w http.ResponseWriter, r *http.Request, truth http.Handler)

// Marker is in what hostile clusters say: it must not come to the management cluster but in conditions.
const Marker = "x-hostile-x"

// Kinds of requests that lies are about.
func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }
func isToken(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/token") }

// Only is a lie to some requests: the others are answered by the cluster.
func Only(which func(r *http.Request) bool, lie Lie) Lie {
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
		if which(r) {
			lie(w, r, truth)
		} else {
			truth.ServeHTTP(w, r)
		}
	}
}

// ToTokens is a lie to those who ask for a token.
func ToTokens(lie Lie) Lie { return Only(isToken, lie) }

// ToWatches is a lie to watches.
func ToWatches(lie Lie) Lie { return Only(isWatch, lie) }

// ToOthers is a lie to all other requests.
func ToOthers(lie Lie) Lie {
	return Only(func(r *http.Request) bool { return !isWatch(r) && !isToken(r) }, lie)
}

// Says is an answer in JSON, whatever is asked.
func Says(code int, text string) Lie {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// SaysForEver writes something, and then something else until the client has enough. what may count.
func SaysForEver(first string, what func(r *http.Request, i int) string) Lie {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, first)
		for i := 0; err == nil && r.Context().Err() == nil; i++ {
			_, err = io.WriteString(w, what(r, i))
		}
	}
}

// SaysNothing answers nothing until it is enough, and ends the connection then.
func SaysNothing(enough <-chan struct{}) Lie {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-enough:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	}
}

// Changes is the answer of the cluster, if it is an object that is no failure, changed.
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

// Event is one of a watch.
func Event(kind, namespace, name string, i int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":%q,"name":%q,"uid":"u-%d","resourceVersion":"%d"}}}`+"\n",
		kind, namespace, name, i, 1_000_000+i)
}

// Heap measures the memory of the process until the test ends. The function that it returns is how much has been used at one time, in MiB,
// more than at the beginning.
func Heap(t testing.TB) (most func() uint64) {
	t.Helper()
	used := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc >> 20
	}
	// The environment of tests lets more garbage pile up than programs do.
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
