// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAttack_SmallEventsAreRateLimited: each event takes time, however small it is, and on whichever watch of a cluster it arrives.
func TestAttack_SmallEventsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, watches = 20_000, 4
		g := watched()
		begin := time.Now()
		var all sync.WaitGroup
		for range watches {
			all.Go(func() {
				if _, err := io.Copy(io.Discard, g.watch(t, strings.Repeat(`{"type":"ADDED"}`, many/watches))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		const atOnce, eachSecond = watchBurst / minEvent, watchRate / minEvent
		want := (many - atOnce) / eachSecond * time.Second
		// The last events of a watch are read before it is throttled for them.
		if took := time.Since(begin); took < want*95/100 || took > want+2*time.Second {
			t.Errorf("%d events took %s, not %s", many, took, want)
		}
	})
}

// TestAttack_LimitsConcurrentLargeResponses, of all clusters together. Others wait, and none keeps its slot for long.
func TestAttack_LimitsConcurrentLargeResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = largeAtOnce + 2
		g := &guard{limits: limits{answer: MaxAnswer, entries: MaxEntries, requestTimeout: RequestTimeout, large: make(chan struct{}, largeAtOnce)}}
		begun := make(chan *body, many)
		ended := make(chan error, many)
		for range many {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(RequestTimeout, func() { cancel(errTooSlow) })
			b := &body{guard: g, ctx: ctx, end: func() { cancel(nil) }, max: MaxAnswer, most: MaxEntries, plain: true,
				ReadCloser: io.NopCloser(io.LimitReader(spaces{}, 2*largeAnswer))}
			go func() {
				_, err := io.CopyN(io.Discard, b, 2*largeAnswer)
				if err != nil {
					ended <- err
					return
				}
				begun <- b
			}()
		}
		synctest.Wait()
		if len(begun) != largeAtOnce || len(ended) > 0 {
			t.Fatalf("%d large answers are read at one time, and %d have ended", len(begun), len(ended))
		}
		if err := (<-begun).Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(begun) != largeAtOnce {
			t.Errorf("when one has ended, there are %d", len(begun))
		}
		time.Sleep(RequestTimeout + time.Second)
		synctest.Wait()
		// The last one has ended, or got the slot of another one that ended at the same moment.
		if len(begun)+len(ended) != many-1 || len(g.large) > 0 {
			t.Errorf("%d have a place, and %d have not ended", len(g.large), many-1-len(begun)-len(ended))
		}
	})
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestAttack_LimitsMetadata: several watches of a cluster start at the same time.
func TestAttack_LimitsMetadata(t *testing.T) {
	c := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			t.Error("protobuf is asked for")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+strings.Repeat("5", MaxMetadata)+`"}}`)
	}))
	objects, err := c.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	_, err = objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(t.Context(), metav1.ListOptions{Limit: 1})
	var ours *Error
	if !errors.As(err, &ours) || ours.Reason != ReasonTooLarge {
		t.Errorf("it is %.1000v", err)
	}
}

// TestOptions_LimitResponses verifies lower limits, for callers that hold many responses at one time.
func TestOptions_LimitResponses(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1","items":[`+strings.TrimSuffix(strings.Repeat("{},", 100), ",")+`]}`)
	})
	for name, options := range map[string]Options{"bytes": {MaxAnswer: 100}, "entries": {MaxEntries: 100}, "as many as there may be": {MaxEntries: 300}} {
		c, err := New(connect(t, s).source, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		err = c.controllerClient(t).List(t.Context(), &corev1.SecretList{})
		if is := reasonOf(err) == ReasonTooLarge; is == (options.MaxEntries == 300) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
