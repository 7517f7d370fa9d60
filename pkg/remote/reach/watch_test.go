// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/test/await"
)

func event(name, data string) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":%q},"stringData":{"x":"%s"}}}`+"\n", name, data)
}

// events returns a cluster and a watch of it, served by answer.
func events(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*Connection, watch.Interface) {
	t.Helper()
	c := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		answer(w, r)
	})).impatient(await.Limit, await.Limit).small()
	watching, err := c.controllerClient(t).Watch(t.Context(), &corev1.SecretList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	return c, watching
}

// TestWatch_TotalIsUnlimited: a watch may be larger than a response, and last longer than a request.
func TestWatch_TotalIsUnlimited(t *testing.T) {
	const many = 10
	next := make(chan struct{})
	_, watching := events(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range many {
			_, _ = io.WriteString(w, event(fmt.Sprint(i), strings.Repeat(`\"}{,[`, 5_000)))
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	for i := range many {
		got := <-watching.ResultChan()
		if secret, ok := got.Object.(*corev1.Secret); !ok || secret.Name != fmt.Sprint(i) {
			t.Fatalf("the event %d is %v", i, got.Type)
		}
		next <- struct{}{}
	}
}

// TestWatch_EventSizeIsLimited: the watch ends, and earlier events are delivered.
func TestWatch_EventSizeIsLimited(t *testing.T) {
	for name, data := range map[string]string{
		"a text without end": `{"type":"ADDED","object":{"x":"` + strings.Repeat("x", 2*smallEvent),
		"entries":            `{"type":"ADDED","object":{"x":[` + strings.Repeat("0,", 2*smallEntries),
		"spaces":             strings.Repeat(" ", 2*smallEvent),
	} {
		t.Run(name, func(t *testing.T) {
			c, watching := events(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, event("first", ""))
				_, _ = io.WriteString(w, data)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			if got := <-watching.ResultChan(); got.Type != watch.Added {
				t.Fatalf("the first event is %v", got)
			}
			for got := range watching.ResultChan() {
				status, ok := got.Object.(*metav1.Status)
				if !ok || !strings.Contains(shown(t, c, fmt.Errorf("%s", status.Message)), "exceeds the maximum of") {
					t.Errorf("the next is %v", got)
				}
			}
		})
	}
}

// TestWatch_EndsWhenIdle, as if the server had ended it.
func TestWatch_EndsWhenIdle(t *testing.T) {
	c := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, event("first", ""))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})).impatient(await.Limit, 100*time.Millisecond)
	watching, err := c.controllerClient(t).Watch(t.Context(), &corev1.SecretList{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	n := 0
	for got := range watching.ResultChan() {
		n++
		if got.Type != watch.Added {
			t.Errorf("the event %d is %v", n, got)
		}
	}
	if n > 1 {
		t.Errorf("%d events came", n)
	}
}

// watched returns a guard with the production limits of watches.
func watched() *guard {
	return &guard{limits: limits{metadata: MaxMetadata, metadataEntries: MaxMetadataEntries, watchIdle: time.Hour}, watchBytes: watchLimiter()}
}

// watch returns the body of a watch that sends data.
func (g *guard) watch(t *testing.T, data string) *body {
	t.Helper()
	idle := time.AfterFunc(time.Hour, func() {})
	t.Cleanup(func() { idle.Stop() })
	b := &body{ReadCloser: io.NopCloser(strings.NewReader(data)), guard: g, ctx: t.Context(), end: func() {}}
	b.watch(idle)
	return b
}

// TestWatch_IsRateLimited: a server that sends events all the time is throttled.
func TestWatch_IsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := strings.Repeat(event("x", strings.Repeat("x", 10_000)), 5*watchBurst/4/10_000)
		b := watched().watch(t, data)
		begin := time.Now()
		n, err := io.Copy(io.Discard, b)
		if err != nil || n != int64(len(data)) {
			t.Error(n, err)
		}
		want := time.Duration(float64(len(data)-watchBurst) / watchRate * float64(time.Second))
		if took := time.Since(begin); took < want || took > want+time.Second {
			t.Errorf("%d bytes took %s, not %s", len(data), took, want)
		}
	})
}
